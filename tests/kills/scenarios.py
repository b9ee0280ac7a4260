"""The commands that are killed, as small as they can be."""

import hashlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import BertTokenizerFast

import archwright as aw
from archwright.checksums import verify_checksums
from archwright.cli.main import main
from archwright.compression.methods import METHODS as REGISTRY
from archwright.store import RunFolder
from tests.compression.runs import BAD, GOOD, PLAIN, QUICK, compressed, saved_model, table_file, words_of
from tests.kills.harness import Scenario, kill_before, run_apart

SMALL: dict[str, Any] = {
    **QUICK,
    "space": "small",
    "trials": 2,
    "epochs": 0.5,
    "original_epochs": 0.5,
    "checkpoint_seconds": 0.0,
    "quiet": True,
}
DESIGN: dict[str, Any] = {
    "space": "nlu-tiny",
    "batch_rows": 2,
    "length": 8,
    "workers": 1,
    "population": 3,
    "generations": 2,
    "quiet": True,
}
TRAIN: dict[str, Any] = {
    "lesson": "mlm",
    "space": "flexibert",
    "tokenizer": "words",
    "steps": 3,
    "batch_size": 4,
    "max_length": 16,
    "validation_rows": 20,
    "checkpoint_seconds": 0.0,
    "threads": 1,
    "quiet": True,
}
BENCHMARK: dict[str, Any] = {"batch_rows": 2, "length": 16, "workers": 1, "samples": 10, "quiet": True}
METHODS = ("weight-sharing", "standard", "retraining-free", "layer-dropping", "magnitude")
"""Of `compress`; head-pruning and random write what magnitude writes."""


def data_folder() -> Path:
    given = os.environ.get("ARCHWRIGHT_DATA")
    return Path(given) if given else Path(__file__).resolve().parents[3] / "shared" / "data"


def write_inputs(folder: Path) -> None:
    """Few rows, and a network that knows their words alone: every kill loads, checks and saves it."""
    torch.set_num_threads(1)
    words = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *GOOD, *BAD, *PLAIN)
    BertTokenizerFast(vocab={word: index for index, word in enumerate(words)}).save_pretrained(folder / "words")
    saved_model(folder / "bert", folder / "words", num_hidden_layers=2)
    table_file(folder / "rows.csv", 60)


def inputs(folder: Path) -> dict[str, Any]:
    return {"model": folder / "bert", "train": folder / "rows.csv"}


def write_run(folder: Path) -> None:
    write_inputs(folder)
    options = {name: value for name, value in SMALL.items() if name != "quiet"}
    compressed(folder / "run", **{**options, "model": str(folder / "bert"), "train": folder / "rows.csv"})


def smallest_trial(folder: Path) -> int:
    return int(aw.open_run(folder / "run").front[0]["trial"])


def digest(folder: Path, pattern: str = "*") -> dict[str, str]:
    """Names and contents of the files below a folder."""
    files = sorted(path for path in folder.rglob(pattern) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def nothing(folder: Path) -> None:
    """Nothing can be half-written that the command itself would not notice."""


# compress ------------------------------------------------------------------------------------------------------------


def compress_words(method: str, **more: Any) -> Callable[[Path], list[str]]:
    """The smallest options, without those that mean nothing for the method and with its usual space."""
    unused = {*REGISTRY[method].unused, *(() if method == "weight-sharing" else ("space",))}
    given = {**SMALL, "shares": "60%,30%", "method": method, **more}
    options = {name: value for name, value in given.items() if name not in unused}
    return lambda folder: words_of("compress", **options, **inputs(folder), out=folder / "run")


def write_until(trained: str, words: Callable[[Path], list[str]]) -> Callable[[Path], None]:
    """A run that has this network already; what a command does up to there is killed in another scenario."""
    end = kill_before(f"os.remove /run/checkpoint-{trained}.safetensors")

    def prepare(folder: Path) -> None:
        write_inputs(folder)
        assert run_apart(words(folder), folder, end, folder.with_suffix(".log")) == -signal.SIGKILL

    return prepare


def check_whole_networks(folder: Path) -> None:
    """Every folder with weights is whole at any moment."""
    for sums in (folder / "run").rglob("checksums.json"):
        if not any(part.startswith(".") for part in sums.relative_to(folder).parts):
            verify_whole(sums.parent)
    for name in ("original", "supernet"):
        assert not (folder / "run" / name).exists() or (folder / "run" / name / "checksums.json").exists(), name


def verify_whole(folder: Path) -> None:
    try:
        verify_checksums(folder, way_out="")
    except ValueError as error:
        raise AssertionError(str(error)) from error


def run_outcome(folder: Path) -> Any:
    result = RunFolder(folder / "run").note("result")
    front = [(e["config"], e["validation_error"], e["test_error"]) for e in result["front"]]
    return front, len(result["trials"]), digest(folder / "run", "model.safetensors")


# select, export ------------------------------------------------------------------------------------------------------


def recover_words(folder: Path, epochs: float = 1.0) -> list[str]:
    return words_of("select", folder / "run", params="100%", recover_epochs=epochs, quiet=True)


def prepare_recovered(folder: Path) -> None:
    """An earlier recovery is replaced."""
    write_run(folder)
    assert main(recover_words(folder, 0.5)) == 0


def check_recovered(folder: Path) -> None:
    (network,) = (folder / "run" / "recovered").glob("trial-*")
    assert (network / "model.safetensors").exists() and (network / "checksums.json").exists()
    verify_whole(network)


def recovered_outcome(folder: Path) -> Any:
    return digest(folder / "run" / "recovered")


def export_words(folder: Path) -> list[str]:
    trial = smallest_trial(folder)
    return words_of("export", folder / "run", trial=trial, to="compact", out=folder / "export" / "it", quiet=True)


def prepare_exported(folder: Path) -> None:
    """Something else was exported to the folder before."""
    write_run(folder)
    assert main(words_of("export", folder / "run", trial=-1, to="compact", out=folder / "export" / "it")) == 0


def check_export(folder: Path) -> None:
    """Not there, or whole."""
    target = folder / "export" / "it"
    if target.exists():
        report = json.loads((target / "parity.json").read_text())
        assert (target / "README.md").exists()
        for name, size in report["files"].items():
            assert (target / name).stat().st_size == size, name


def check_replaced(folder: Path) -> None:
    assert (folder / "export" / "it").exists(), "the earlier export is gone"
    check_export(folder)


def export_outcome(folder: Path) -> Any:
    files = digest(folder / "export")
    return {name: content for name, content in files.items() if not name.endswith(("parity.json", "README.md"))}


# train, design, rank, discover ---------------------------------------------------------------------------------------


def write_text(folder: Path) -> None:
    lines = [f"The river rose on day {n} and the old bridge number {2 * n} was closed." for n in range(120)]
    (folder / "text.txt").write_text("\n".join(lines))


def prepare_training(folder: Path) -> None:
    from tests.training.pipeline.runs import DESIGNS

    write_text(folder)
    (folder / "design.json").write_text(json.dumps(DESIGNS["flexibert"]))


def train_words(folder: Path) -> list[str]:
    paths = {"config": folder / "design.json", "corpus": folder / "text.txt", "out": folder / "run"}
    return words_of("train", **TRAIN, **paths)


def prepare_taught(folder: Path) -> None:
    prepare_training(folder)
    write_inputs(folder)


def taught_words(folder: Path) -> list[str]:
    """A task with a teacher, whose answers are kept, and with rows whose words are exchanged."""
    paths = {"config": folder / "design.json", "train": folder / "rows.csv", "teacher": folder / "bert"}
    options = {name: TRAIN[name] for name in ("space", "checkpoint_seconds", "threads", "quiet")}
    options |= {"epochs": 1.3, "batch_size": 16, "max_length": 16, "teacher_epochs": 0.4, "augment": 1}
    return words_of("train", **options, **paths, out=folder / "run")


def check_trained(folder: Path) -> None:
    model = folder / "run" / "model"
    if model.exists():
        assert (model / "model.safetensors").exists() and (model / "checksums.json").exists()
        verify_whole(model)


def train_outcome(folder: Path) -> Any:
    steps = [line.split(",")[:2] for line in (folder / "run" / "log.csv").read_text().splitlines()]
    return steps, digest(folder / "run" / "model"), (folder / "run" / "report.html").exists()


def design_words(folder: Path) -> list[str]:
    return words_of("design", **DESIGN, text=folder / "text.txt", out=folder / "design")


def check_documents(folder: Path) -> None:
    """Every JSON file outside of hidden folders can be read."""
    for path in folder.rglob("*.json"):
        if not any(part.startswith(".") for part in path.relative_to(folder).parts):
            try:
                json.loads(path.read_text())
            except ValueError as error:
                raise AssertionError(f"{path.name} is damaged: {error}") from error


def design_outcome(folder: Path) -> Any:
    document = json.loads((folder / "design" / "design.json").read_text())
    return document["config"], document["score"], document["history"][-1]["best"]


def prepare_benchmark(folder: Path) -> None:
    write_text(folder)
    (folder / "table").mkdir()
    entries = json.loads((data_folder() / "nas-bert" / "BERT_benchmark.json").read_text())
    shallow = [entry for entry in entries if len(overrides(entry)["nas_config"]["encoder_layers"]) == 2]
    (folder / "table" / "BERT_benchmark.json").write_text(json.dumps(shallow[:21]))


def overrides(entry: dict[str, Any]) -> Any:
    return entry["hparams"]["model_hparam_overrides"]


def benchmark_words(command: str, **more: Any) -> Callable[[Path], list[str]]:
    return lambda folder: words_of(
        *(command, "nas-bert"),
        **{**BENCHMARK, **more},
        **{"data": folder / "table", "text": folder / "text.txt", "out": folder / "out"},
        **{"json": folder / "result.json", "html": folder / "page.html"},
    )


def rank_outcome(folder: Path) -> Any:
    rows = json.loads((folder / "result.json").read_text())["rows"]
    return [(row["proxy"], row["spearman"]) for row in rows], (folder / "page.html").exists()


def discover_outcome(folder: Path) -> Any:
    best = json.loads((folder / "result.json").read_text())["best"]
    return [(entry["formula"], entry["train"]) for entry in best], (folder / "page.html").exists()


def compress_scenario(method: str, *, after: str = "", **more: Any) -> Scenario:
    """Of a run from its beginning, or from where it has the network `after`."""
    words = compress_words(method, **more)
    prepare = write_until(after, words) if after else write_inputs
    return Scenario(prepare, words, check_whole_networks, run_outcome)


SCENARIOS = {
    "compress-weight-sharing": compress_scenario("weight-sharing"),
    "compress-chain": compress_scenario("weight-sharing", after="supernet", space="chain"),
    **{f"compress-{method}": compress_scenario(method, after="original") for method in METHODS[1:]},
    "recover": Scenario(write_run, recover_words, nothing, recovered_outcome),
    "recover-again": Scenario(prepare_recovered, recover_words, check_recovered, recovered_outcome),
    "export": Scenario(write_run, export_words, check_export, export_outcome),
    "export-over-export": Scenario(prepare_exported, export_words, check_replaced, export_outcome),
    "train": Scenario(prepare_training, train_words, check_trained, train_outcome),
    "train-teacher": Scenario(prepare_taught, taught_words, check_trained, train_outcome),
    "design": Scenario(write_text, design_words, check_documents, design_outcome),
    "rank": Scenario(
        prepare_benchmark,
        benchmark_words("rank", proxies=("w_pca", "parameters"), ablation=False),
        check_documents,
        rank_outcome,
    ),
    "discover": Scenario(
        prepare_benchmark,
        benchmark_words("discover", exhaustive=True, unary=1, inputs="W,S", fold_seeds=1, published="none"),
        check_documents,
        discover_outcome,
    ),
}
