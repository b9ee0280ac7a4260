"""A user's script under `mypy --strict`: calls of the public functions are checked, and results have types."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

GOOD = """
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import archwright as aw
from archwright.callbacks import TensorBoard

run = aw.compress(task="movie-reviews", trials=10, out="runs/demo", corners=["largest"])
smaller = run.select(params=0.5)
smaller.save_pretrained("smaller")
trial: int = smaller.entry["trial"]
both = aw.compress(compare=["standard", "weight-sharing"], minutes=5.0)
again = both.run("standard").front
aw.compress(preview="minilm").as_json()
hours: float = aw.compress(dry_run=True, train="rows.csv").seconds / 3600
aw.select("runs/demo", params="50%", to="compact").as_json()
aw.export(run=Path("runs/demo"), trial=3, to="onnx", int8=True)
scores = aw.score(space="flexibert", random=5, proxies=("w_pca",)).rows
aw.rank("nas-bert", samples=100)
aw.discover("nas-bert", exhaustive=True).best
aw.design(space="nlu-small").as_json()
aw.train(model="minilm", task="movie-reviews").metrics
aw.report(["runs/demo"], out="page")
aw.open_run("runs/demo").front.to_pandas()


class Printed(aw.Callback):
    def on_trial(self, trial: int, numbers: Mapping[str, float]) -> None:
        print(trial, numbers["validation_error"])


class Model:
    def save_pretrained(self, save_directory: str, max_shard_size: str = "5GB") -> None: ...


rows = [{"text": "good", "label": 1}]
mine = aw.compress(model=Model(), tokenizer=Model(), train=rows, validation="rows.csv", callbacks=[Printed()])
first: dict[str, Any] = mine.front[0]
mine.plot(size="latency").write_html("front.html")
repr(mine.select(latency_ms=8.0))
print(aw.select("runs/demo", params="50%", latency_ms=8.0).pick.entry["trial"])
aw.compress(model=Path("model"), callbacks=[TensorBoard("logs")])
"""
WRONG = {
    "keyword": ("aw.compress(trails=10)", "trails"),
    "type": ('aw.compress(trials="ten")', "compress"),
    "path": ("aw.train(out=3)", "out"),
    "missing": ("aw.select(params=0.5)", "run"),
    "rows": ("aw.compress(train=3)", "compress"),
    "model": ("aw.compress(model=object())", "compress"),
    "callback": ("aw.compress(callbacks=[print])", "Callback"),
    "result": ('aw.compress(compare=["standard"]).select(params=0.5)', "select"),
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def check(script: Path, text: str, cache: Path) -> tuple[int, str]:
    """Exit code and complaints of mypy; transformers and torch are not read."""
    script.write_text(text)
    settings = script.with_name("mypy.ini")
    settings.write_text(
        "[mypy]\nstrict = true\n[mypy-torch.*,transformers.*,optuna.*,ray.*]\nfollow_imports = skip\n"
        "[mypy-archwright.*]\nfollow_imports = silent\n"
    )
    words = [sys.executable, "-m", "mypy", "--config-file", settings, "--cache-dir", cache, script]
    environment = os.environ | {"MYPYPATH": str(SOURCE)}
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, env=environment, cwd=script.parent)
    return done.returncode, done.stdout


def test_a_users_script_is_typed(tmp_path: Path, cache: Path) -> None:
    assert (SOURCE / "archwright" / "py.typed").exists()
    code, said = check(tmp_path / "mine.py", GOOD, cache)
    assert code == 0, said


def test_a_wrong_call_is_an_error(tmp_path: Path, cache: Path) -> None:
    lines = "\n".join(line for line, _ in WRONG.values())
    code, said = check(tmp_path / "mine.py", f"import archwright as aw\n{lines}\n", cache)
    assert code == 1
    for number, (line, word) in enumerate(WRONG.values(), 2):
        complaints = [text for text in said.splitlines() if text.startswith(f"mine.py:{number}: error")]
        assert any(word in text for text in complaints), (line, said)
