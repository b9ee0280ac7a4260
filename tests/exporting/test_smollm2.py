"""A real language model at half of its size: loads and writes text where the project is not installed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy

from archwright.data.text.tokenizer import load_tokenizer
from archwright.exporting.checkpoint import export
from archwright.exporting.onnx_file import load_onnx
from archwright.networks.load import load_supernet
from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec, SubnetSpec
from tests.exporting.test_generation import ask_elsewhere
from tests.exporting.tiny import inside

pytestmark = pytest.mark.slow
LAYERS = 30
WHOLE = (LayerSpec(3, 1536),) * LAYERS
EVEN = tuple(LayerSpec(2, 768) if layer % 6 else LayerSpec(0, 0) for layer in range(LAYERS))
UNEVEN = tuple(
    LayerSpec(0, 0) if layer % 5 in (2, 4) else LayerSpec((0, 2) if layer % 2 else 3, 1200 + 10 * layer)
    for layer in range(LAYERS)
)
KEEPS: dict[str, SubnetSpec] = {"hf": EVEN, "hf-padded": UNEVEN, "compact": UNEVEN}
TEXT = "The tower is 324 metres tall, about the same height as an 81-storey building. " * 8


@pytest.fixture(scope="module")
def model(smollm2: Path) -> PrunedNetwork:
    return load_supernet(str(smollm2), kind="lm")


@pytest.fixture(scope="module")
def folders(model: PrunedNetwork, smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    words = load_tokenizer(str(smollm2))
    ids = words(TEXT, return_tensors="pt")["input_ids"]
    batches = [
        {"input_ids": part.contiguous(), "attention_mask": torch.ones_like(part)}
        for part in (ids[:, :128], ids[:, :7], ids[:, :96].view(3, 32))
    ]
    made = {to: tmp_path_factory.mktemp("smollm2") / to for to in KEEPS}
    for to, keep in KEEPS.items():
        export(extract(model, keep), words, made[to], to=to, reference=inside(model, keep), batches=batches)
    return made


@pytest.mark.parametrize("to", KEEPS)
def test_parity_and_size(folders: dict[str, Path], model: PrunedNetwork, to: str) -> None:
    report = json.loads((folders[to] / "parity.json").read_text())
    assert report["difference_share"] <= report["limit"] == 1e-4
    assert report["difference"]["same_predictions"] == 1
    embeddings = 49152 * 576
    assert report["parameters"] - embeddings <= 0.6 * (model.num_parameters() - embeddings)
    if to != "hf-padded":
        assert report["bytes"] == pytest.approx(4 * report["parameters"], rel=0.01)  # tied embeddings are stored once


def test_8_bits_predict_the_next_token_almost_as_well(model: PrunedNetwork, smollm2: Path, tmp_path: Path) -> None:
    words = load_tokenizer(str(smollm2))
    ids = words(TEXT, return_tensors="pt")["input_ids"][:, :64]
    batches = [{"input_ids": ids, "attention_mask": torch.ones_like(ids)}]
    parity = export(
        model, words, tmp_path / "out", to="onnx", int8=True, reference=inside(model, WHOLE), batches=batches
    )
    assert parity.int8 is not None and parity.int8.bytes < 0.4 * parity.bytes
    assert parity.int8.difference.same_predictions is not None and parity.int8.difference.same_predictions > 0.85
    losses = [
        cross_entropy(load_onnx(tmp_path / "out" / name)(batches[0])[0, :-1], ids[0, 1:])
        for name in ("model.onnx", "model_int8.onnx")
    ]
    assert losses[1].item() == pytest.approx(losses[0].item(), abs=0.1)


ELSEWHERE = """
import json, sys
sys.modules["archwright"] = None  # any import of it fails
from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline
answers = {}
for to, folder in json.loads(sys.argv[1]).items():
    trust = to == "compact"
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust)
    model = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=trust).eval()
    chat = [{"role": "user", "content": "Name a colour."}]
    inputs = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    how = {"max_new_tokens": 16, "do_sample": False}
    cached, plain = (model.generate(**inputs, use_cache=use, **how)[0].tolist() for use in (True, False))
    write = pipeline("text-generation", model=folder, trust_remote_code=trust)
    answers[to] = [cached == plain, write("Once upon a time", **how)[0]["generated_text"], len(cached)]
print("ANSWERS", json.dumps(answers))
"""


def test_it_writes_text_where_the_project_is_not_installed(folders: dict[str, Path], tmp_path: Path) -> None:
    answers = ask_elsewhere(ELSEWHERE, {to: str(folder) for to, folder in folders.items()}, tmp_path)
    for same, text, length in answers.values():
        assert same
        assert isinstance(text, str) and text.startswith("Once upon a time") and len(text) > 20
        assert isinstance(length, int) and length > 16
    assert answers["hf-padded"] == answers["compact"]


PEAK = """
import resource, sys
from pathlib import Path
import torch
from archwright.exporting.checkpoint import (export)
from archwright.networks.load import load_saved_network
from transformers import AutoTokenizer
network = load_saved_network(Path(sys.argv[1]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
ids = torch.arange(100, 164)[None]
batches = [{"input_ids": ids, "attention_mask": torch.ones_like(ids)}]
def reference(inputs):
    with torch.no_grad():
        return network(**inputs).logits
words = AutoTokenizer.from_pretrained(sys.argv[1], trust_remote_code=True)
export(network, words, Path(sys.argv[2]), to="compact", reference=reference, batches=batches)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print("PEAK", 1024 * (peak - before))
"""


def test_writing_needs_little_memory(folders: dict[str, Path], tmp_path: Path) -> None:
    """Beside the network itself: what is read back, and the files on their way to the disk."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(folders["compact"]), str(tmp_path / "out")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    peak = int(next(line for line in done.stdout.splitlines() if line.startswith("PEAK")).split()[1])
    assert peak < 2 * (folders["compact"] / "model.safetensors").stat().st_size
