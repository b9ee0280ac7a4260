"""GLUE files that are not as they should be, and the layouts of the official downloads."""

from pathlib import Path

import pytest

from archwright.data.tasks.task import load_task
from archwright.errors import BadInput

HEADER = "index\tsentence1\tsentence2\tlabel\n"
ROWS = "".join(f"{i}\ta {i}\tb {i}\t{'not_' * (i % 2)}entailment\n" for i in range(40))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.tsv").write_text(HEADER + ROWS)
    (tmp_path / "dev.tsv").write_text(HEADER + ROWS)
    return tmp_path


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "has none of dev.tsv, dev_matched.tsv, dev_subset.tsv"),
        (b"", "dev.tsv is empty or damaged"),
        (HEADER.encode(), "dev.tsv is empty or damaged: 0 of 0 rows"),
        ((HEADER + ROWS + "1\tx\n").encode(), "damaged: 1 of 41 rows do not have 4 fields"),
        ((HEADER + ROWS).replace("sentence2", "other").encode(), "no column 'sentence2'; it has 'index'"),
        ((HEADER + ROWS + "9\ta\tb\tmaybe\n").encode(), "has the label 'maybe'; this task knows 'entailment'"),
        ((HEADER + ROWS + "9\ta\tb\t2\n").encode(), "has the label '2'"),
        ((HEADER + ROWS).encode() + b"\xff\n", "must be UTF-8, .*0xff at position"),
    ],
)
def test_damaged_files(folder: Path, content: bytes | None, line: str) -> None:
    (folder / "dev.tsv").unlink() if content is None else (folder / "dev.tsv").write_bytes(content)
    with pytest.raises(BadInput, match=line) as caught:
        load_task("glue/RTE", data=folder)
    assert "\n" not in str(caught.value)


def test_a_few_short_rows_are_left_out_and_said(folder: Path) -> None:
    (folder / "train.tsv").write_text(HEADER + ROWS * 5 + "1\thalf a row\n")
    task = load_task("glue/RTE", data=folder)
    assert len(task.splits["train"]) + len(task.splits["validation"]) == 200
    assert "1 broken rows of train.tsv left out" in task.note


def test_byte_order_mark_windows_lines_and_quotes(folder: Path) -> None:
    content = (HEADER + ROWS).replace("a 3\t", '" a 3\t')
    (folder / "dev.tsv").write_bytes(b"\xef\xbb\xbf" + content.replace("\n", "\r\n").encode())
    rows = load_task("glue/RTE", data=folder).splits["test"]
    assert len(rows) == 40 and rows.texts[3] == '" a 3' and rows.targets[:2].tolist() == [0, 1]


def test_official_layouts(tmp_path: Path) -> None:
    mnli = "index\tpairID\tsentence1\tsentence2\tlabel1\tgold_label\n"
    names = ("entailment", "neutral", "contradiction")
    rows = "".join(f"{i}\tp\ta {i}\tb {i}\tneutral\t{names[i % 3]}\n" for i in range(60))
    (tmp_path / "train.tsv").write_text(mnli + rows)
    (tmp_path / "dev_matched.tsv").write_text(mnli + rows)
    task = load_task("glue/MNLI", data=tmp_path)
    assert task.splits["test"].targets[:3].tolist() == [0, 1, 2]
    assert "dev_matched.tsv is the test set" in task.note and "part of" not in task.note


def test_not_a_number_in_sts_b(tmp_path: Path) -> None:
    for name in ("train.tsv", "dev.tsv"):
        rows = "".join(f"a\tb\t{'nan' if i == 7 else i / 8}\n" for i in range(20))
        (tmp_path / name).write_text("sentence1\tsentence2\tscore\n" + rows)
    with pytest.raises(BadInput, match="a regression target must be a finite number, got 'nan'"):
        load_task("glue/STS-B", data=tmp_path)
