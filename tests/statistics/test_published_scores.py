"""Published rows: complete, and consistent with the averages that the tables print."""

import pytest

from archwright.statistics.published_scores import read_published_scores, similar_models

GLUE = ("QNLI", "MRPC", "SST-2", "CoLA", "STS-B", "MNLI-m", "MNLI-mm", "RTE", "QQP")
ROWS = read_published_scores()


def test_every_table_is_there() -> None:
    counts = {table: sum(row.table == table for row in ROWS) for table in (2, 3, 4, 5, 7, 8)}
    assert counts == {2: 16, 3: 10, 4: 7, 5: 3, 7: 3, 8: 4} and len(ROWS) == 43


@pytest.mark.parametrize(
    "row", [row for row in ROWS if "QNLI" in row.scores], ids=lambda row: f"{row.table}-{row.model}"
)
def test_averages_are_the_means_of_the_columns(row) -> None:  # type: ignore[no-untyped-def]
    scores = [row.scores[name] for name in GLUE if name in row.scores]
    assert len(scores) == (9 if row.split == "test" else 8)
    off = row.table == 7 and row.model == "EfficientBERT"  # as printed: 78.7 where the columns have 79.0
    assert (abs(sum(scores) / len(scores) - row.scores["average"]) < 0.06) != off


def test_models_of_a_similar_size_stand_first() -> None:
    near = similar_models(["SST-2"], 10_000_000)
    assert [row.model for row in near][:2] == ["NAS-BERT-10", "W-PCA-Tiny"] and len(near) == 5
    assert near[1].scores["SST-2"] == 92.0 and {row.split for row in near} == {"dev"}
    assert [row.model for row in similar_models(["squad2_f1"], 23_000_000, most=1)] == ["MiniLM-6"]
