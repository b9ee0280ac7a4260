"""The memory bench: its phases run, a process tells its own peak, and the ratios are what they say."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from archwright.errors import Failed
from archwright.networks.load import stock_config, supernet_config
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.spec import nonembedding_parameters
from experiments.speed import memory as bench_memory
from experiments.speed.__main__ import PARTS
from experiments.speed.memory import COMMAND, PHASES, PLAIN, main, memory, peak_of, random_model, spread
from experiments.speed.ratios import BenchConfig

TINY = {"hidden_size": 48, "num_attention_heads": 4, "intermediate_size": 64, "num_hidden_layers": 2}


@pytest.fixture
def folder(tmp_path: Path, minilm: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bench_memory, "LENGTH", 16)
    random_model(tmp_path / "model", seed=0, **TINY)
    return tmp_path


def test_every_phase_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in PHASES:
        main(name, str(folder))
        told = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert 0 < told["imports"] <= told["peak"], name
    assert (folder / "checkpoint-memory.safetensors").exists()
    assert (folder / "run" / "report.html").exists()


HELD = """
import numpy as np
from experiments.speed.memory import memory
before = memory("VmHWM")
np.ones(before - memory("VmRSS") + 200_000_000, dtype=np.uint8)
assert memory("VmHWM") >= before + 150_000_000
assert memory("VmRSS") < memory("VmHWM") - 100_000_000
"""


def test_a_peak_stays_when_the_memory_is_given_back() -> None:
    """In a process of its own: what is free in a large one need not go back to the system."""
    subprocess.run([sys.executable, "-c", HELD], check=True, cwd=Path(__file__).parents[2])
    with pytest.raises(Failed, match="VmOther"):
        memory("VmOther")


@pytest.mark.slow
def test_a_process_of_its_own_tells_its_peak(folder: Path) -> None:
    hog = np.ones(1_500_000_000, dtype=np.uint8)  # what the parent holds is not counted
    found = peak_of(PLAIN, folder)
    assert 0 < found["imports"] < found["peak"] < hog.nbytes
    with pytest.raises(Failed, match="memory of nothing failed"):
        peak_of("nothing", folder)


def test_ratios_leave_the_imports_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = {name: {"imports": 100, "peak": 100 + 10 * place} for place, name in enumerate(PHASES, start=1)}
    monkeypatch.setattr(bench_memory, "random_model", lambda folder, seed: None)
    monkeypatch.setattr(bench_memory, "peak_of", lambda name, folder: peaks[name])
    ratios = bench_memory.bench_memory(BenchConfig(what="memory"))
    assert [ratio.median for ratio in ratios] == [*range(2, len(PHASES) + 1), (100 + 10 * len(PHASES)) / 110]
    assert [ratio.met for ratio in ratios[:3]] == [True, True, False] and ratios[-1].met
    assert ratios[-1].name.endswith(f"{COMMAND} / {PLAIN}")


def test_the_front_spreads_from_a_tenth_to_the_whole(folder: Path) -> None:
    of = read_anatomy(supernet_config(stock_config(str(folder / "model")), labels=("a", "b"), pooling="cls"))
    counts = [nonembedding_parameters(of, keep) for keep in spread(of)]
    assert counts == sorted(counts) and len(set(counts)) == 10 and counts[-1] == nonembedding_parameters(of, of.full)


@pytest.mark.parametrize("name", PARTS)
def test_every_part_can_be_measured(name: str) -> None:
    assert callable(getattr(import_module(f"experiments.speed.{name}"), f"bench_{name}"))
