"""What is found on one benchmark is judged on the others: nothing of theirs takes part, and what they lack is said."""

import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from archwright.commands import COMMANDS, call
from archwright.discovery.context import published_proxies
from archwright.errors import BadInput
from archwright.reports.discover.page import render_discover_page

LOGS = Path("nas-bench-nlp/train_logs_wikitext-2/logs.zip")
RECIPES = 26


@pytest.fixture(scope="session")
def small_data(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public data with only some of the cells."""
    folder = tmp_path_factory.mktemp("data")
    for name in ("wikitext-2", "gpt2-bpe", "nas-bert", "lts-gpt2"):
        (folder / name).symlink_to(data_dir / name)
    (folder / LOGS).parent.mkdir(parents=True)
    for file in (data_dir / "nas-bench-nlp").glob("*.csv"):
        shutil.copy(file, folder / "nas-bench-nlp")
    with zipfile.ZipFile(data_dir / LOGS) as whole, zipfile.ZipFile(folder / LOGS, "w") as part:
        for name in [name for name in whole.namelist() if not name.endswith("/")][:RECIPES]:
            part.writestr(name, whole.read(name))
    return folder


@pytest.mark.slow
def test_there_and_back(options: dict[str, Any], small_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHWRIGHT_DATA", str(small_data))
    found = call(COMMANDS["discover"], {**options, "exhaustive": True, "transfer": ("nas-bench-nlp",)}).as_json()
    rows = found["transfer"]
    formulas = [row for row in rows if "formula" in row]
    assert {row["found_on"] for row in formulas} == {"nas-bert", "nas-bench-nlp"}
    for row in formulas:
        own, other = row["on"][row["found_on"]], row["on"][({*row["on"]} - {row["found_on"]}).pop()]
        assert own["cross_fitted"] and own["held_out"]["value"] is not None
        lacking = [name for name in ("H", "S") if f"{name})" in row["formula"] or f"{name} " in row["formula"]]
        if row["found_on"] == "nas-bert" and lacking:
            assert other == {"missing": f"no layer has {' and '.join(lacking)}"}
    back = [row for row in formulas if row["found_on"] == "nas-bench-nlp"]
    assert any(row["on"]["nas-bert"].get("n") == found["n"] for row in back)
    assert all(not row["on"]["nas-bert"].get("cross_fitted") for row in back)
    known = {row["proxy"]: row["on"] for row in rows if "proxy" in row}
    assert known["snip"]["nas-bert"]["held_out"]["value"] is not None
    assert "missing" in known["softmax_confidence"]["nas-bench-nlp"]
    page = render_discover_page(found)
    assert "Transfer between benchmarks" in page and back[0]["formula"].split("(")[0] in page


def test_which_proxies_are_marked() -> None:
    cheap, everything = set(published_proxies("cheap")), set(published_proxies("all"))
    assert "snip" in cheap and "grasp" in everything - cheap and published_proxies("none") == ()


@pytest.mark.parametrize("names", [("nas-bert",), ("lts-gpt2", "lts-gpt2")])
def test_benchmarks_are_named_once(options: dict[str, Any], names: tuple[str, ...]) -> None:
    with pytest.raises(BadInput, match="--transfer must name other benchmarks"):
        call(COMMANDS["discover"], {**options, "exhaustive": True, "transfer": names})


def test_an_unknown_benchmark_is_told(options: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="transfer must be"):
        call(COMMANDS["discover"], {**options, "exhaustive": True, "transfer": ("nas-bart",)})
