"""Averages over GLUE, with numbers that papers print."""

import pytest

from archwright.statistics.metrics import AVERAGES, METRICS, OFFICIAL, average_columns

SMALL = {"QNLI": 90.3, "MRPC": 88.7, "SST-2": 91.5, "CoLA": 38.4, "STS-B": 86.4, "MNLI-m": 82.8, "MNLI-mm": 82.2,
         "RTE": 73.8, "QQP": 70.8}  # fmt: skip
"""W-PCA-Small on the test set (Table 2)."""
SMALL_DEV = {"QNLI": 90.8, "MRPC": 90.5, "SST-2": 92.8, "CoLA": 44.0, "STS-B": 85.3, "MNLI-m": 82.9, "RTE": 76.1,
             "QQP": 88.8}  # fmt: skip
"""The same on the dev set (Table 3)."""


def everywhere(scores: dict[str, float]) -> dict[str, dict[str, float]]:
    return {column: dict.fromkeys(METRICS, value) for column, value in scores.items()}


@pytest.mark.parametrize(
    ("name", "scores", "printed"), [("test_columns", SMALL, 78.3), ("dev_columns", SMALL_DEV, 81.4)]
)
def test_printed_averages(name: str, scores: dict[str, float], printed: float) -> None:
    found = average_columns(everywhere(scores), AVERAGES[name])
    assert found is not None
    assert found.mean == pytest.approx(printed, abs=0.06)
    assert found.missing == ()


def test_columns_and_metrics() -> None:
    sizes = {name: len(average.columns) for name, average in AVERAGES.items()}
    assert sizes == {"test_columns": 9, "dev_columns": 8, "glue_score": 8}
    for average in AVERAGES.values():
        assert "WNLI" not in average.columns
        for column, metric in average.columns.items():
            assert metric in OFFICIAL[column]
    assert AVERAGES["glue_score"].columns["MRPC"] == "accuracy"
    assert AVERAGES["test_columns"].columns["QQP"] == "f1"


def test_a_missing_column_is_no_average() -> None:
    found = average_columns({"RTE": {"accuracy": 0.5}, "SST-2": {"accuracy": 0.7}}, AVERAGES["dev_columns"])
    assert found is not None
    assert found.mean is None
    assert found.mean_of_present == pytest.approx(0.6)
    assert "CoLA" in found.missing
    assert average_columns({"WNLI": {"accuracy": 0.5}}, AVERAGES["dev_columns"]) is None
