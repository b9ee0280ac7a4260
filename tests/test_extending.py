"""A package that adds one of each kind: docs/extending.md shows its files; installed, the command line knows it."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from archwright.data.tasks.tables import Columns
from archwright.data.tasks.task import TaskRequest
from archwright.errors import BadInput
from tests.compression.runs import saved_model, table_file

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tests" / "extension_package"
SCORING = ["--proxies", "token_spread,parameters", "--batch-rows", "2", "--length", "8", "--workers", "1"]
QUICK = [
    *("--epochs", "1", "--original-epochs", "1", "--batch-size", "16", "--trials", "5", "--rounds", "3"),
    *("--threads", "1", "--max-length", "48"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip installed the package."""
    folder = tmp_path_factory.mktemp("extension")
    shutil.copytree(PACKAGE, folder / "package")  # building leaves files beside the source
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    words = [sys.executable, "-m", "pip", "install", *options, "--target", str(folder / "site"), "./package"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text("the film is very good and the story with old music is a new one\n" * 200)
    return file


def run(site: Path, *words: Any) -> "subprocess.CompletedProcess[str]":
    """The command line with the package installed."""
    paths = os.pathsep.join([str(site), str(ROOT / "src")])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "archwright", *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def document(site: Path, file: Path, *words: Any) -> dict[str, Any]:
    """What a command that works writes as JSON."""
    done = run(site, *words, "--json", file)
    assert done.returncode == 0, done.stderr
    written: dict[str, Any] = json.loads(file.read_text())
    return written


def test_the_page_shows_the_files_of_the_package() -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r'```\w+ title="(.*?)"\n(.*?)```\n', page, flags=re.DOTALL))
    files = [path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".toml") and path.name != "__init__.py"]
    assert shown == {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in files}


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("score", ("token_spread: how different tokens", "even-encoder: BERT encoders")),
        ("compress", ("climber: hill climbing",)),
    ],
)
def test_help_lists_them(site: Path, command: str, names: tuple[str, ...]) -> None:
    shown = " ".join(run(site, command, "--help-all").stdout.split())
    assert all(name in shown for name in names)


def test_score_with_its_proxy_in_its_space(site: Path, text: Path, minilm: Path, tmp_path: Path) -> None:
    words = ["score", "--space", "even-encoder", "--random", "2", *SCORING, "--text", text, "--out", tmp_path / "cache"]
    scored = document(site, tmp_path / "score.json", *words)
    assert scored["space"] == "even-encoder" and scored["size"]["raw"] == 45
    assert all(0 < row["scores"]["token_spread"] < 2 for row in scored["rows"]) and scored["n"] == 2


def test_rank_its_benchmark(site: Path, text: Path, minilm: Path, tmp_path: Path) -> None:
    designs = list(product((1, 2, 3, 4), (48, 96), (1, 2, 4)))
    lines = [f"{d},{w},{f},{0.5 + 0.02 * d + 0.001 * w + 0.01 * f}\n" for d, w, f in designs]
    (tmp_path / "results.csv").write_text("depth,width,widening,accuracy\n" + "".join(lines))
    words = ["--data", tmp_path, "--text", text, "--out", tmp_path / "cache", "--samples", "20", "--no-ablation"]
    ranked = document(site, tmp_path / "rank.json", "rank", "even-results", *SCORING, *words)
    assert ranked["benchmark"] == "even-results" and ranked["n"] == len(designs)
    correlations = {row["proxy"]: row["kendall_b"] for row in ranked["rows"]}
    assert correlations["parameters"] > 0.7 and -1 <= correlations["token_spread"] <= 1


@pytest.fixture(scope="module")
def compressed(site: Path, minilm: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A run with the family, the kind of task and the sampler of the package, and its JSON."""
    folder = tmp_path_factory.mktemp("compressed")
    model = saved_model(folder / "ernie", minilm, "ernie")
    rows = [line.split(",") for line in table_file(folder / "rows.csv").read_text().splitlines()[1:]]
    shares = folder / "shares.csv"
    shares.write_text("text,label\n" + "".join(f"{row[0]},{float(row[3]) / 2:.3f}\n" for row in rows))
    words = ["compress", "--model", model, "--task", "share", "--train", shares, "--sampler", "climber", *QUICK]
    return folder / "run", document(site, folder / "run.json", *words, "--out", folder / "run")


def test_compress_with_its_family_task_and_sampler(compressed: tuple[Path, dict[str, Any]]) -> None:
    _, result = compressed
    assert (result["family"], result["sampler"], result["metric"]) == ("ernie", "climber", "pearson")
    assert result["front"] and all(0 <= entry["validation_error"] <= 2 for entry in result["front"])


def test_the_package_refuses_labels_that_are_no_shares(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(PACKAGE / "src")
    load = import_module("extra_archwright.task").load
    columns = Columns(label="score")
    request = TaskRequest("share", None, table_file(tmp_path / "rows.csv"), None, None, columns, None, None)
    with pytest.raises(BadInput, match="a share must be between 0 and 1"):
        load(request)


@pytest.mark.slow
@pytest.mark.parametrize("to", ["compact", "hf-padded"])
def test_its_networks_are_exported(site: Path, compressed: tuple[Path, dict[str, Any]], to: str) -> None:
    done = run(site, "select", compressed[0], "--params", "90%", "--to", to)
    assert done.returncode == 0 and "verified" in done.stdout, done.stderr
    (folder,) = (compressed[0] / "export").glob(f"*-{to}")
    code = "\n".join(path.read_text() for path in folder.glob("*.py"))
    assert "import archwright" not in code and "extra_archwright import" not in code
    assert ("class PrunedForShares" in code) == (to == "compact")


@pytest.mark.parametrize(("group", "option"), [("proxies", "--proxies"), ("spaces", "--space")])
def test_a_package_that_cannot_be_loaded_is_one_line(tmp_path: Path, group: str, option: str) -> None:
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[archwright.{group}]\nlost = nowhere:THING\n")
    for words in (["score", "--help"], ["score", "--random", "1", option, "lost"]):
        done = run(tmp_path, *words)
        assert done.returncode == 2 and done.stdout == ""
        (line,) = done.stderr.splitlines()
        assert "'lost' of the package broken cannot be loaded (ModuleNotFoundError" in line
