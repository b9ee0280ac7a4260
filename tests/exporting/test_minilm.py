"""A real network in every format, and in a process that does not have the project."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from archwright.exporting.checkpoint import export
from archwright.exporting.formats import FORMATS
from archwright.exporting.parity import varied_batches
from archwright.networks.load import load_supernet
from archwright.networks.pruned import PrunedNetwork
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec
from tests.exporting.tiny import inside

EVEN = (LayerSpec(12, 512), LayerSpec(0, 0), LayerSpec(12, 512), LayerSpec(0, 0), LayerSpec(12, 512), LayerSpec(0, 0))
UNEVEN = (
    LayerSpec((0, 3, 5), 700),
    LayerSpec(0, 300),
    LayerSpec(12, 0),
    LayerSpec(0, 0),
    LayerSpec(6, 1536),
    LayerSpec(1, 9),
)
KEEPS = {"hf": EVEN, "hf-padded": UNEVEN, "compact": UNEVEN, "onnx": UNEVEN}
TEXTS = [
    "good",
    "a truly bad film , with nothing that could save it",
    "the plot is thin but the actors are wonderful and the pictures are lovely " * 4,
    *("word " * length for length in range(1, 25)),
]


@pytest.fixture(scope="module")
def model(minilm: Path) -> PrunedNetwork:
    return load_supernet(str(minilm), labels=("negative", "positive")).eval()


@pytest.fixture(scope="module")
def folders(minilm: Path, model: PrunedNetwork, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    tokenizer = AutoTokenizer.from_pretrained(minilm)
    made = {to: tmp_path_factory.mktemp("minilm") / to for to in FORMATS}
    for to, kind in FORMATS.items():
        export(
            extract(model, KEEPS[to]),
            tokenizer,
            made[to],
            to=to,
            int8=kind.quantize is not None,
            reference=inside(model, KEEPS[to]),
            batches=varied_batches(tokenizer, TEXTS),
        )
    return made


def test_mean_pooling_is_what_minilm_uses(model: PrunedNetwork) -> None:
    assert model.config.pooling == "mean"


@pytest.mark.parametrize("to", FORMATS)
def test_parity_and_size(folders: dict[str, Path], to: str) -> None:
    report = json.loads((folders[to] / "parity.json").read_text())
    assert report["difference"]["largest"] < 2e-6
    assert len({shape["length"] for shape in report["difference"]["shapes"]}) >= 3
    assert report["bytes"] < 92e6


def test_compact_and_8_bit_files_are_small(folders: dict[str, Path]) -> None:
    compact = json.loads((folders["compact"] / "parity.json").read_text())
    assert compact["bytes"] == pytest.approx(4 * compact["parameters"], rel=0.01)
    twin = json.loads((folders["onnx"] / "parity.json").read_text())["int8"]
    assert twin["bytes"] == pytest.approx(compact["parameters"], rel=0.1)  # embeddings and head included
    assert twin["difference"]["largest"] < 0.1


ELSEWHERE = """
import json, sys
sys.modules["archwright"] = None  # any import of it fails
from transformers import AutoConfig, AutoModelForSequenceClassification, pipeline
answers = {}
for to, trust in (("hf", False), ("hf-padded", False), ("compact", True)):
    folder = json.loads(sys.argv[1])[to]
    names = AutoConfig.from_pretrained(folder, trust_remote_code=trust).id2label
    AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=trust)
    classify = pipeline("text-classification", model=folder, trust_remote_code=trust)
    answers[to] = [classify("a lovely film", top_k=None), sorted(names.values())]
print("ANSWERS", json.dumps(answers))
"""


def test_pipelines_work_where_the_project_is_not_installed(folders: dict[str, Path], tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    given = json.dumps({to: str(folder) for to, folder in folders.items()})
    done = subprocess.run(
        [sys.executable, "-I", "-c", ELSEWHERE, given], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "not supported" not in done.stderr
    answers = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("ANSWERS"))[8:])
    for scores, names in answers.values():
        assert names == ["negative", "positive"]
        assert sorted(score["label"] for score in scores) == names
    padded, compact = ({score["label"]: score["score"] for score in answers[to][0]} for to in ("hf-padded", "compact"))
    assert padded == pytest.approx(compact, abs=1e-5)


def test_the_snippet_of_the_onnx_card_runs(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folders["onnx"].parent)
    snippet = (folders["onnx"] / "README.md").read_text().split("```python\n")[1].split("```")[0]
    exec(snippet, {})
    assert capsys.readouterr().out.count("[") == 3  # two rows of logits
