"""--metric and --class-weights: what fits a task, what is refused, and what a user's function is called with."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score, roc_auc_score
from torch import nn

from archwright.data.tasks.task import load_task
from archwright.errors import BadInput
from archwright.objectives.error import measure_error, measure_rows
from archwright.training.judging import choose_metric, parse_class_weights
from archwright.training.losses import task_loss
from tests.compression.runs import table_file
from tests.data.test_label_sets import jsonl
from tests.data.test_sentences import conll

OWN = """
import numpy as np

def score(labels, predictions):
    return float((labels == predictions).mean())

def sure(labels, predictions, logits):
    assert logits.shape == (len(labels), 3) and (logits.argmax(1) == predictions).all()
    return 0.25

def broken(labels, predictions):
    return float("nan")

def crash(labels, predictions):
    raise KeyError("oh")
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path / "own.py"


class Fixed(nn.Module):
    """A network whose answers are known."""

    device = torch.device("cpu")

    def __init__(self, logits: np.ndarray):
        super().__init__()
        self.logits = torch.tensor(logits)

    def forward(self, rows: torch.Tensor) -> Any:
        return type("Answer", (), {"logits": self.logits[rows]})


class Rows:
    """A batch of these rows."""

    windows = None

    def __init__(self, rows: np.ndarray, targets: np.ndarray):
        self.rows, self.inputs = rows, {"rows": torch.tensor(rows)}
        self.targets = torch.tensor(targets[rows])

    def to(self, device: torch.device) -> "Rows":
        return self


def setup(classes: int) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    logits, targets = rng.normal(size=(50, classes)), rng.integers(0, classes, 50)
    batches = [Rows(rows, targets) for rows in np.array_split(rng.permutation(50), 4)]
    return Fixed(logits), batches, logits, targets


def test_areas_and_macro_f1_of_networks() -> None:
    for positive in (0, 1):
        network, batches, logits, targets = setup(2)
        area = roc_auc_score(targets == positive, logits[:, positive] - logits[:, 1 - positive])
        assert measure_error(network, batches, metric="roc_auc", positive=positive) == pytest.approx(1 - area)
    network, batches, logits, targets = setup(3)
    shares = torch.tensor(logits).softmax(-1).numpy()
    area = roc_auc_score(targets, shares, multi_class="ovr")
    assert measure_error(network, batches, metric="roc_auc") == pytest.approx(1 - area)
    macro = f1_score(targets, logits.argmax(1), average="macro")
    assert measure_error(network, batches, metric="macro_f1") == pytest.approx(1 - macro)


def test_a_function_gets_labels_predictions_and_logits_in_the_order_of_the_rows(own: Path) -> None:
    network, batches, logits, targets = setup(3)
    rows = measure_rows(network, batches, metric=f"{own}:score")
    assert rows.error == pytest.approx(1 - (logits.argmax(1) == targets).mean())
    assert (rows.targets == targets).all()
    assert measure_error(network, batches, metric=f"{own}:sure", positive=None) == 0.75
    for name, message in (("broken", "must return a finite number, got nan"), ("crash", "failed .KeyError: 'oh'")):
        with pytest.raises(BadInput, match=message):
            measure_error(network, batches, metric=f"{own}:{name}")


FITS = [
    ("classes", "mcc", "matthews"),
    ("classes", "f1", "f1"),
    ("classes", "roc_auc", "roc_auc"),
    ("sets", "f1", "micro_f1"),
    ("sets", "macro_f1", "macro_f1"),
    ("tags", "accuracy", "token_accuracy"),
    ("tags", "f1", "entity_f1"),
]
DIFFERS = [
    (
        "classes",
        "spearman",
        "--metric for classification must be one of accuracy, f1, macro_f1, matthews, roc_auc, or FILE",
    ),
    ("classes", "perplexity", "got 'perplexity'"),
    ("sets", "matthews", "must be one of micro_f1, macro_f1, roc_auc, accuracy, or FILE"),
    ("tags", "roc_auc", "must be one of entity_f1, token_accuracy, got"),
    ("tags", "own.py:score", "one answer per row"),
    ("classes", "nowhere.py:score", "which is not there"),
]


def task_of(name: str, folder: Path) -> Any:
    made = {"classes": lambda: table_file(folder / "rows.csv"), "sets": lambda: jsonl(folder / "rows.jsonl")}
    return load_task(train=made[name]() if name in made else conll(folder / "rows.conll"), split="random")


@pytest.mark.parametrize(("task", "given", "metric"), FITS)
def test_what_fits(task: str, given: str, metric: str, tmp_path: Path) -> None:
    chosen = choose_metric(task_of(task, tmp_path), given)
    assert chosen.metric == metric and chosen.metric_chosen


@pytest.mark.parametrize(("task", "given", "message"), DIFFERS)
def test_what_does_not_fit(task: str, given: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=message):
        choose_metric(task_of(task, tmp_path), given)


def test_functions_that_are_not_there(own: Path, tmp_path: Path) -> None:
    task = task_of("classes", tmp_path)
    with pytest.raises(BadInput, match="has no function 'scores'; it has score, sure, broken, crash"):
        choose_metric(task, f"{own}:scores")
    (tmp_path / "bad.py").write_text("import nothing_of_that_name\n")
    with pytest.raises(BadInput, match=r"cannot be run \(ModuleNotFoundError"):
        choose_metric(task, f"{tmp_path / 'bad.py'}:score")
    assert choose_metric(task, None) is task


def test_f1_of_three_classes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,label\n" + "".join(f"word{n},{'abc'[n % 3]}\n" for n in range(60)))
    with pytest.raises(BadInput, match="--metric f1 is about one of two classes, got 3 classes; take macro_f1"):
        choose_metric(load_task(train=path), "f1")


def test_weights_of_classes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    task = task_of("classes", tmp_path)
    counts = np.bincount(task.splits["train"].targets)
    assert parse_class_weights(("balanced",), task) == pytest.approx(counts.sum() / (2 * counts))
    assert parse_class_weights(("1", "3.5"), task) == (1.0, 3.5)
    assert "class weights: bad 1, good 3.5" in caplog.text
    assert parse_class_weights((), task) is None
    for values, message in {
        ("1",): "2 numbers, in the order bad, good",
        ("1", "x"): "got 'x'",
        ("1", "-1"): "'-1'",
    }.items():
        with pytest.raises(BadInput, match=message):
            parse_class_weights(values, task)
    with pytest.raises(BadInput, match="are for classification"):
        parse_class_weights(("balanced",), task_of("tags", tmp_path))


def test_the_weighted_loss_is_torchs() -> None:
    rng = np.random.default_rng(0)
    logits, targets = torch.tensor(rng.normal(size=(9, 3))), torch.tensor(rng.integers(0, 3, 9))
    weights = (0.5, 2.0, 1.0)
    expected = nn.CrossEntropyLoss(weight=torch.tensor(weights, dtype=torch.float64))(logits, targets)
    torch.testing.assert_close(task_loss(logits, targets, weights=weights), expected)
