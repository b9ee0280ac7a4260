"""Weights in bfloat16, gradient checkpointing, 8-bit moments and adapters through compress, select and export."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig

import archwright as aw
from archwright.networks.load import load_saved_network
from archwright.training import lora
from tests.compression.runs import compressed, refusal, sentence, words_of

SIZE = {
    "hidden_size": 32,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "max_position_embeddings": 66,
    "tie_word_embeddings": True,
}


def saved_llama(folder: Path, minilm: Path, dtype: torch.dtype = torch.bfloat16) -> Path:
    """A random Llama in this precision with MiniLM's tokenizer."""
    tokenizer = AutoTokenizer.from_pretrained(minilm)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = AutoModelForCausalLM.from_config(LlamaConfig(vocab_size=len(tokenizer), **SIZE))
    network.to(dtype).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def texts(place: Path) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    lines = [" ".join(sentence(rng, ("good", "bad")) for _ in range(6)) for _ in range(120)]
    file = place / "large-lm.txt"
    file.write_text("\n".join(lines))
    return {"task": "lm", "train": file, "max_length": 24, "batch_size": 4, "train_rows": 8, "validation_rows": 4}


@pytest.fixture(scope="module")
def llama(place: Path, minilm: Path) -> Path:
    return saved_llama(place / "large-llama", minilm)


@pytest.fixture(scope="module")
def large_run(place: Path, llama: Path, texts: dict[str, Any]) -> Any:
    """Everything that saves memory, together."""
    saving = {"weights": "checkpoint", "gradient_checkpointing": True, "optimizer": "adamw-8bit"}
    return compressed(place / "large", model=str(llama), **texts, **saving, test_rows=4, trials=3)


def precisions(folder: Path) -> set[str]:
    with safe_open(folder / "model.safetensors", "pt") as file:
        return {file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118


def test_a_run_keeps_the_precision_of_the_checkpoint_everywhere(large_run: Any) -> None:
    folder = large_run.folder.path
    networks = [folder / "original", folder / "supernet", *sorted((folder / "networks").iterdir())]
    assert len(networks) > 2 and all(precisions(network) == {"BF16"} for network in networks)
    assert large_run.folder.settings["precision"] == "bfloat16"
    trained, original = (load_saved_network(folder / name).state_dict() for name in ("supernet", "original"))
    moved = [name for name in trained if "proj" in name and not torch.equal(trained[name], original[name])]
    assert len(moved) > 10  # it was trained


@pytest.mark.parametrize("to", ["compact", "hf-padded", pytest.param("onnx", marks=pytest.mark.slow)])
def test_exports_are_exact_in_float32(large_run: Any, to: str, tmp_path: Path) -> None:
    """onnxruntime has no bfloat16 products: there the weights become float32."""
    member = min(large_run.result["front"], key=lambda entry: entry["nonembedding_share"])
    report = aw.export(run=large_run.folder.path, trial=member["trial"], to=to, out=tmp_path / "out")
    parity = report.as_json()
    assert parity["difference_share"] <= 1e-4
    assert parity["weights"] == ("float32" if to == "onnx" else "bfloat16")
    if to != "onnx":
        assert precisions(tmp_path / "out") == {"BF16"} and "in bfloat16, compared in float32" in report.lines()[0]
    if to == "hf-padded":
        stock = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
        assert stock.dtype == torch.bfloat16 and stock(torch.tensor([[5, 6, 7]])).logits.isfinite().all()


def test_recovery_through_adapters_leaves_an_ordinary_network(large_run: Any) -> None:
    pytest.importorskip("peft")
    asked: dict[str, Any] = {"params": "100%", "recover_epochs": 1, "lora": 2, "threads": 1, "repair": "none"}
    picked = aw.select(large_run.folder.path, **asked)
    assert picked.recovery is not None and picked.recovery["lora"] == 2
    assert any("through adapters of rank 2" in line for line in picked.lines())
    trial = picked.pick.entry["trial"]
    network = load_saved_network(large_run.folder.recovered_network(trial))
    assert network.dtype == torch.bfloat16 and not [key for key in network.state_dict() if "lora" in key]


def test_calibration_alone_prunes_to_the_sizes_that_were_asked_for(
    llama: Path, texts: dict[str, Any], tmp_path: Path
) -> None:
    given = {**texts, "weights": "checkpoint", "original_epochs": 0.0, "method": "retraining-free"}
    run = compressed(tmp_path / "run", model=str(llama), **given, shares=("80%", "0.5"), test_rows=2, epochs=2.0)
    networks = sorted((tmp_path / "run" / "networks").iterdir())
    trials = run.result["trials"]
    # Of random weights a cut can have the lower error by chance, so that the whole network is not on the front.
    ends = [
        t for t in trials if all(t["values"][0] < o["values"][0] for o in trials if o["values"][1] < t["values"][1])
    ]
    assert run.result["selection"]["rescored"] == len(ends) >= 1
    assert len(networks) == len([trial for trial in ends if trial["nonembedding_share"] < 1])
    assert len(trials) == 3 and all(precisions(network) == {"BF16"} for network in networks)
    shares = sorted(trial["nonembedding_share"] for trial in trials)
    assert shares[0] == pytest.approx(0.5, abs=0.01) and shares[1] == pytest.approx(0.8, abs=0.01) and shares[2] == 1


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"weights": "checkpoint", "precision": "float32"}, "--precision float32 needs weights in float32"),
    ({"weights": "half"}, "--weights must be one of"),
    ({"optimizer": "sgd"}, "--optimizer must be one of"),
    ({"shares": ("50%",)}, "--shares means nothing for --method weight-sharing"),
    ({"method": "retraining-free", "shares": ("120%",)}, "--shares must be below 100%"),
    ({"method": "retraining-free", "shares": ("half",)}, "--shares must be a share such as 60%"),
]


@pytest.mark.parametrize(("options", "words"), WRONG)
def test_contradictions_are_refused(
    options: dict[str, Any], words: str, llama: Path, texts: dict[str, Any], tmp_path: Path, capfd: Any
) -> None:
    out = tmp_path / "run"
    code, line = refusal(capfd, words_of("compress", model=llama, **texts, **options, out=out, quiet=True))
    assert code == 2 and words in line and not out.exists()


def test_float16_weights_cannot_be_kept(minilm: Path, texts: dict[str, Any], tmp_path: Path, capfd: Any) -> None:
    model = saved_llama(tmp_path / "half", minilm, torch.float16)
    code, line = refusal(capfd, words_of("compress", model=model, **texts, weights="checkpoint", out=tmp_path / "run"))
    assert code == 2 and "--weights checkpoint needs safetensors in bfloat16 or float32, got float16" in line


def test_adapters_need_a_recovery_and_peft(large_run: Any, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    words = ["select", str(large_run.folder.path), "--params", "100%", "--lora", "4"]
    code, line = refusal(capfd, words)
    assert code == 2 and "say --recover-epochs as well" in line
    monkeypatch.setattr(lora, "find_spec", lambda name: None)
    code, line = refusal(capfd, [*words, "--recover-epochs", "1"])
    assert code == 2 and "--lora needs the package peft" in line
