"""Scores on disk: merged by key, whole after a kill in the middle of a line, shared between processes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from archwright.store import ScoreStore, digest


def test_additions_are_merged_and_read_again(tmp_path: Path) -> None:
    scores = ScoreStore(tmp_path / "deep" / "folder")
    scores.add("a", {"scores": {"x": 1.0}, "missing": {}})
    scores.add("a", {"scores": {"y": 2.5}, "missing": {"z": "why"}})
    for found in (scores, ScoreStore(tmp_path / "deep" / "folder")):
        assert found.of("a") == {"scores": {"x": 1.0, "y": 2.5}, "missing": {"z": "why"}}
        assert found.of("b") == {}


def test_half_a_line_is_left_behind(tmp_path: Path) -> None:
    ScoreStore(tmp_path).add("a", {"scores": {"x": 1.0}})
    whole = (tmp_path / "scores.jsonl").read_bytes()
    for cut in range(len(whole)):
        (tmp_path / "scores.jsonl").write_bytes(whole + whole[:cut].replace(b'"a"', b'"b"'))
        scores = ScoreStore(tmp_path)
        scores.add("c", {"scores": {"x": 3.0}})
        again = ScoreStore(tmp_path)
        assert again.of("a") == {"scores": {"x": 1.0}} and again.of("c") == {"scores": {"x": 3.0}}


def test_several_write_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: ScoreStore(tmp_path).add(str(n), {"scores": {"x" * 500: n}}), range(60)))
    found = ScoreStore(tmp_path)
    assert all(found.of(str(n)) == {"scores": {"x" * 500: n}} for n in range(60))


def test_names_of_contents() -> None:
    assert digest("a", "b") == digest(b"a", b"b") != digest("ab") != digest("a", "b", "")
