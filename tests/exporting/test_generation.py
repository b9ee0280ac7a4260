"""Exported decoders write text: with a cache and without, here and in a process that does not have the project."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel

from archwright.exporting.checkpoint import export
from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec, SubnetSpec
from tests.exporting.test_decoders import CASES, SUPERNETS
from tests.exporting.tiny import DECODERS, ENCODERS, batch, batches, inside, supernet, tokenizer

KEEPS = {
    "uneven": (LayerSpec(1, 9), LayerSpec((0, 2), 4), LayerSpec(2, 30)),
    "no attention in the first layer": (LayerSpec(0, 11), LayerSpec((0, 2), (1, 5, 7)), LayerSpec(2, 0)),
    "no attention in the middle": (LayerSpec(2, 3), LayerSpec(0, 8), LayerSpec((1,), 5)),
    "no attention": (LayerSpec(0, 3),) * 3,
}
NEW = 12


def greedy(network: PrunedNetwork | PreTrainedModel, ids: Tensor) -> Tensor:
    """The most likely next token, again and again, by whole passes over the text."""
    with torch.no_grad():
        for _ in range(NEW):
            logits = network(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits
            ids = torch.cat([ids, logits[:, -1:].argmax(-1)], dim=1)
    return ids


def generated(model: PreTrainedModel, ids: Tensor, *, use_cache: bool) -> Tensor:
    mask = torch.ones_like(ids)
    found: Tensor = model.generate(
        ids,
        attention_mask=mask,
        max_new_tokens=NEW,
        min_new_tokens=NEW,
        do_sample=False,
        use_cache=use_cache,
        pad_token_id=0,
        eos_token_id=None,
    )
    return found


def write(folder: Path, family: str, grouping: str, keep: SubnetSpec, to: str) -> None:
    model = SUPERNETS[family, grouping]
    export(
        extract(model, keep),
        tokenizer(family),
        folder,
        to=to,
        reference=inside(model, keep),
        batches=batches(family, "lm"),
    )


@pytest.mark.covering
@pytest.mark.parametrize(("family", "grouping"), CASES)
@pytest.mark.parametrize("keep", KEEPS.values(), ids=KEEPS)
def test_a_cache_changes_nothing(family: str, grouping: str, keep: SubnetSpec) -> None:
    network = extract(SUPERNETS[family, grouping], keep)
    ids = batch(family, 2, 6, kind="lm")["input_ids"]
    expected = greedy(network, ids)
    assert len(expected.unique()) > 4
    assert torch.equal(generated(network, ids, use_cache=True), expected)
    assert torch.equal(generated(network, ids, use_cache=False), expected)


@pytest.mark.covering
@pytest.mark.parametrize("to", ["compact", "hf-padded"])
@pytest.mark.parametrize(("family", "grouping"), CASES)
def test_exports_write_the_same(family: str, grouping: str, to: str, tmp_path: Path) -> None:
    keep = KEEPS["no attention in the first layer"]
    write(tmp_path / "out", family, grouping, keep, to)
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out", trust_remote_code=to == "compact").eval()
    ids = batch(family, 2, 6, kind="lm")["input_ids"]
    expected = greedy(extract(SUPERNETS[family, grouping], keep), ids)
    assert torch.equal(generated(model, ids, use_cache=True), expected)
    assert torch.equal(generated(model, ids, use_cache=False), expected)


ELSEWHERE = """
import json, sys
sys.modules["archwright"] = None  # any import of it fails
import torch
from transformers import (AutoModelForMultipleChoice, AutoModelForQuestionAnswering,
                          AutoModelForSequenceClassification, AutoModelForTokenClassification, pipeline)
folders = json.loads(sys.argv[1])
answers = {}
for name, folder in folders["lm"].items():
    write = pipeline("text-generation", model=folder, trust_remote_code=True)
    model = write.model.eval()
    ids = torch.tensor([[4, 9, 14, 19]])
    how = {"max_new_tokens": 12, "min_new_tokens": 12, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    cached, plain = (model.generate(ids, use_cache=use, **how).tolist() for use in (True, False))
    text = write("w4 w9 w14 w19", max_new_tokens=12, min_new_tokens=12, do_sample=False)[0]["generated_text"]
    answers[name] = [cached, plain, text]
classes = {"choice": AutoModelForMultipleChoice, "qa": AutoModelForQuestionAnswering,
           "classification": AutoModelForSequenceClassification, "tokens": AutoModelForTokenClassification}
for kind, auto in classes.items():
    for family, folder in folders[kind].items():
        model = auto.from_pretrained(folder, trust_remote_code=True).eval()
        inputs = {name: torch.tensor(values) for name, values in folders["inputs"][kind][family].items()}
        with torch.no_grad():
            answers[f"{kind}, {family}"] = model(**inputs).logits.tolist()
        if kind == "tokens":
            tag = pipeline("token-classification", model=folder, trust_remote_code=True)
            assert {each["entity"] for each in tag("w4 w9 w14")} <= {"O", "B-name", "I-name"}
print("ANSWERS", json.dumps(answers))
"""
FAMILIES = tuple(family for family in DECODERS if "," not in family)
EVERY = tuple(family for family in (*ENCODERS, *DECODERS) if "," not in family)
TASKS = {
    "choice": ("roberta", "qwen2"),
    "qa": ("roberta", "qwen2", "modernbert"),
    "classification": EVERY,
    "tokens": ("roberta", "qwen2", "modernbert"),
}
FEW_TASKS = {
    "choice": ("roberta",),
    "qa": ("qwen2",),
    "classification": ("mpnet", "modernbert", "deberta-v2"),
    "tokens": ("qwen2",),
}


@pytest.mark.parametrize("tasks", [FEW_TASKS, pytest.param(TASKS, marks=pytest.mark.slow)], ids=["few", "all"])
def test_compact_networks_of_every_kind_work_where_the_project_is_not_installed(
    tasks: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    keep = KEEPS["no attention in the first layer"]
    given: dict[str, dict[str, object]] = {"lm": {}, "inputs": {}}
    for family in FAMILIES:
        write(tmp_path / family, family, "groups", keep, "compact")
        given["lm"][family] = str(tmp_path / family)
    expected = {}
    for kind, families in tasks.items():
        given[kind], given["inputs"][kind] = {}, {}
        for family in families:
            model, folder = supernet(family, kind=kind), tmp_path / f"{kind}-{family}"
            samples = batches(family, kind)
            export(
                extract(model, keep),
                tokenizer(family),
                folder,
                to="compact",
                reference=inside(model, keep),
                batches=samples,
            )
            given[kind][family] = str(folder)
            given["inputs"][kind][family] = {name: values.tolist() for name, values in samples[3].items()}  # type: ignore[index]
            expected[f"{kind}, {family}"] = inside(model, keep)(samples[3])
    answers = ask_elsewhere(ELSEWHERE, given, tmp_path)
    ids = torch.tensor([[4, 9, 14, 19]])
    for family in FAMILIES:
        cached, plain, text = answers[family]
        whole = greedy(extract(SUPERNETS[family, "groups"], keep), ids).tolist()
        assert cached == plain == whole
        assert text.startswith("w4 w9 w14 w19") and len(text) > len("w4 w9 w14 w19")
    for name, logits in expected.items():
        assert torch.allclose(torch.tensor(answers[name]), logits, atol=1e-4, rtol=0)


def ask_elsewhere(code: str, given: object, folder: Path) -> dict[str, list[object]]:
    """What the code prints after ANSWERS in a fresh process that knows nothing of the project."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, json.dumps(given)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("ANSWERS"))
    found: dict[str, list[object]] = json.loads(line.removeprefix("ANSWERS"))
    return found
