"""Files of a run folder damaged at random: one clear line and the right exit code, or the result of a whole folder.

A few in `make test`, hundreds in the slow test; the seed of a corruption is its name.
"""

import json
import random
import shutil
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archwright.cli.main import main
from archwright.store import RunFolder
from tests.compression.runs import QUICK, front_of, words_of

UNREAD = ("report.html", "config.yaml", ".lock", "README.md")
"""What no command reads again."""
PARTS = 20
"""Of the 600 corruptions."""


def flip_bit(content: bytes, rng: random.Random) -> bytes:
    raw = bytearray(content)
    raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    return bytes(raw)


def cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def zero(content: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(content))
    return content[:start] + bytes(min(512, len(content) - start)) + content[start + 512 :]


def noise(content: bytes, rng: random.Random) -> bytes:
    return rng.randbytes(rng.randrange(1, 2000))


def repeat(content: bytes, rng: random.Random) -> bytes:
    return content + content[: rng.randrange(1, len(content) + 1)]


def nested(content: bytes, rng: random.Random) -> bytes:
    return b'{"a":' * 50_000


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (flip_bit, flip_bit, cut, zero, noise, repeat, nested)


def select(run: Path) -> tuple[int, Any]:
    out = run.parent / "out.json"
    code = main(["select", str(run), "--params", "100%", "--json", str(out), "--quiet"])
    return code, json.loads(out.read_text())["selected"] if code == 0 else None


def export(run: Path) -> tuple[int, Any]:
    trial, out = json.loads((run.parent / "trial").read_text()), run.parent / "export"
    code = main(["export", str(run), "--trial", str(trial), "--to", "compact", "--out", str(out), "--quiet"])
    return code, (out / "model.safetensors").read_bytes() if code == 0 else None


def resume(run: Path) -> tuple[int, Any]:
    options = json.loads((run.parent / "options").read_text())
    code = main(words_of("compress", **options, out=run, quiet=True))
    return code, front_of(RunFolder(run).note("result")) if code == 0 else None


ACTIONS = {"select": select, "export": export, "resume": resume}


@pytest.fixture(scope="module")
def whole(run: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run and what to do with it."""
    place = tmp_path_factory.mktemp("corrupted") / "whole"
    shutil.copytree(run.folder.path, place / "run", ignore=shutil.ignore_patterns("export", "recovered"))
    noted = RunFolder(place / "run").settings
    asked = {**QUICK, "model": 0, "train": 0, "learning_rate": 0, "original_epochs": 0, "epochs": 0}
    (place / "options").write_text(json.dumps({name: noted[name] for name in asked} | {"trials": 16}))
    (place / "trial").write_text(json.dumps(run.front[0]["trial"]))
    return place


@pytest.fixture(scope="module")
def expected(whole: Path) -> dict[str, Any]:
    """What each action gives in a whole folder."""
    results = {}
    for name, action in ACTIONS.items():
        copy = Path(shutil.copytree(whole, whole.with_name(f"whole-{name}")))
        code, results[name] = action(copy / "run")
        assert code == 0
    return results


def corrupt(seed: int, whole: Path, expected: dict[str, Any], place: Path, capfd: Any, *, journal: bool = False) -> str:
    """What is wrong with the answer to one corruption; nothing when nothing is."""
    rng = random.Random(f"corruption {seed} {journal}")
    copy = Path(shutil.copytree(whole, place))
    files = sorted(path for path in (copy / "run").rglob("*") if path.is_file() and path.name not in UNREAD)
    path = copy / "run" / "study.journal" if journal else rng.choice(files)
    damage, name = (flip_bit, "resume") if journal else (rng.choice(DAMAGES), rng.choice(list(ACTIONS)))
    content = path.read_bytes()
    if not content:
        return ""
    path.write_bytes(damage(content, rng))
    about = f"{seed}: {damage.__name__} of {path.relative_to(copy)}, {name}"
    capfd.readouterr()
    try:
        code, result = ACTIONS[name](copy / "run")
    except Exception:
        return f"{about}: {traceback.format_exc()[-700:]}"
    finally:
        shutil.rmtree(copy)
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("archwright: ")]
    if code == 0:
        return "" if result == expected[name] else f"{about}: another result"
    return "" if code in (1, 2) and len(lines) == 1 else f"{about}: {code} {lines}"


@pytest.mark.parametrize("seed", range(8))
def test_a_corrupted_folder(seed: int, whole: Path, expected: dict[str, Any], tmp_path: Path, capfd: Any) -> None:
    assert corrupt(seed, whole, expected, tmp_path / "copy", capfd) == ""


@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_of_the_journal(
    seed: int, whole: Path, expected: dict[str, Any], tmp_path: Path, capfd: Any
) -> None:
    assert corrupt(seed, whole, expected, tmp_path / "copy", capfd, journal=True) == ""


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_500_corrupted_folders_and_100_flipped_bits_of_the_journal(
    part: int, whole: Path, expected: dict[str, Any], tmp_path: Path, capfd: Any
) -> None:
    faults = [corrupt(seed, whole, expected, tmp_path / f"{seed}", capfd) for seed in range(part, 500, PARTS)]
    seeds = range(part, 100, PARTS)
    faults += [corrupt(seed, whole, expected, tmp_path / f"j{seed}", capfd, journal=True) for seed in seeds]
    assert [fault for fault in faults if fault] == []
