"""Perplexity, answers to questions and multiple choice: by hand, in whatever batches, and learnable."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, GPT2Config

from archwright.data.batching import Batch, Encoded, batches, encode, evaluation_batches
from archwright.data.tasks.questions import QuestionRows
from archwright.data.tasks.task import Task, load_task
from archwright.data.text.corpus import next_tokens
from archwright.data.text.tokenizer import load_tokenizer
from archwright.errors import Failed
from archwright.networks.load import network_class, supernet_config
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.error import best_spans, measure_error, predict, predict_spans
from archwright.statistics import METRICS
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec
from archwright.training.losses import task_loss
from tests.data.generated import COLUMNS, write_choices
from tests.objectives.test_error import Answers

KEEP = (LayerSpec(1, 7), LayerSpec(0, 5))


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_of_labels_has_an_error(metric: str) -> None:
    labels = torch.tensor([0, 1, 1, 0])
    batch = Batch({"logits": torch.nn.functional.one_hot(labels, 2).float()}, labels, np.arange(4))
    assert measure_error(Answers(), [batch], metric=metric) == pytest.approx(0.0)


def token_batches(logits: torch.Tensor, targets: torch.Tensor, sizes: Iterable[int]) -> list[Batch]:
    """The rows in batches of these sizes."""
    rows = np.split(np.arange(len(targets)), np.cumsum(list(sizes)))
    return [Batch({"logits": logits[part]}, targets[part], part) for part in rows if len(part)]


def drawn_tokens(rows: int = 7, time: int = 5, words: int = 11) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    targets = torch.randint(words, (rows, time), generator=generator)
    targets[:, -1] = -100
    targets[2] = -100  # rows have different numbers of targets
    return torch.randn(rows, time, words, generator=generator), targets


def test_perplexity_by_hand() -> None:
    logits = torch.log(torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.3, 0.3, 0.4]]]))
    batch = Batch({"logits": logits}, torch.tensor([[0, 2, -100]]), np.arange(1))
    assert measure_error(Answers(), [batch], metric="perplexity") == pytest.approx((1 / (0.5 * 0.8)) ** 0.5, rel=1e-6)


@pytest.mark.parametrize("sizes", [(), (3,), (1, 1, 1, 1, 1, 1), (2, 4)])
def test_perplexity_does_not_depend_on_the_batches(sizes: tuple[int, ...]) -> None:
    logits, targets = drawn_tokens()
    flat = torch.nn.functional.cross_entropy(logits.double().flatten(0, 1), targets.flatten(), ignore_index=-100)
    found = measure_error(Answers(), token_batches(logits, targets, sizes), metric="perplexity")
    assert found == pytest.approx(float(flat.exp()), rel=1e-6)


def test_guessing_has_the_perplexity_of_the_vocabulary() -> None:
    _, targets = drawn_tokens()
    made = token_batches(torch.zeros(7, 5, 11), targets, (2,))
    assert measure_error(Answers(), made, metric="perplexity") == pytest.approx(11, rel=1e-6)


def test_a_hopeless_network_has_a_finite_perplexity() -> None:
    logits = torch.zeros(1, 2, 3)
    logits[..., 0] = 1e6
    batch = Batch({"logits": logits}, torch.tensor([[1, -100]]), np.arange(1))
    found = measure_error(Answers(), [batch], metric="perplexity")
    assert np.isfinite(found) and found == pytest.approx(np.exp(100))


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_language_model_that_answers_nan_fails(bad: float) -> None:
    logits, targets = drawn_tokens()
    logits[3, 1, 4] = bad
    with pytest.raises(Failed, match="NaN or infinity"):
        measure_error(Answers(), token_batches(logits, targets, (3,)), metric="perplexity")


def spans_of(starts: list[float], ends: list[float], context: list[int]) -> list[float]:
    found = best_spans(torch.tensor([[starts, ends]]), torch.tensor([context]))[0]
    return [float(value) for value in found]


def test_best_spans_by_hand() -> None:
    context = [1, 0, 1, 1, 1, 0]
    assert spans_of([9, 9, 1, 0, 2, 9], [5, 9, 4, 1, 3, 9], context) == [5.0, 2.0, 2.0, 14.0]
    assert spans_of([0, 0, 1, 0, 2, 0], [0, 0, 4, 1, 6, 0], context) == [8.0, 4.0, 4.0, 0.0]
    assert spans_of([0, 0, 3, 0, 2, 0], [0, 0, 0, 1, 6, 0], context) == [9.0, 2.0, 4.0, 0.0]
    assert spans_of([0, 0, 0, 0, 5, 0], [0, 0, 5, 0, 0, 0], context)[:3] == [5.0, 2.0, 2.0]  # never backwards


def test_no_span_is_longer_than_thirty_tokens() -> None:
    starts, ends = torch.zeros(60), torch.zeros(60)
    starts[3], ends[32], ends[33] = 5.0, 1.0, 2.0
    context = torch.ones(1, 60, dtype=torch.long)
    assert best_spans(torch.stack([starts, ends])[None], context)[0, :3].tolist() == [6.0, 3.0, 32.0]


@pytest.fixture(scope="module")
def tokenizer(minilm: Path) -> Any:
    return load_tokenizer(str(minilm))


CONTEXTS = ["the red cat sat on the mat near the old barn in ohio", "seven green apples and a blue boat"]


def questions(*, unanswerable: bool = False) -> QuestionRows:
    spans = [(4, 11), (6, 11)]
    given = [(context[a:b],) for context, (a, b) in zip(CONTEXTS, spans, strict=True)]
    asked = ["who sat here?", "which colour?"]
    return QuestionRows(asked, CONTEXTS, np.arange(2), np.array(spans), given, unanswerable)


def told(encoded: Encoded, tokens: int) -> list[Batch]:
    """Batches whose logits point at their targets, weakly where the target is "none"."""
    made = []
    for batch in evaluation_batches(encoded, tokens=tokens):
        time = batch.inputs["input_ids"].shape[1]
        logits = torch.nn.functional.one_hot(batch.targets, time).float() * 10
        logits[(batch.targets == 0).all(-1)] *= 0.5
        inputs = {"logits": logits, "context_mask": batch.inputs["context_mask"]}
        made.append(Batch(inputs, batch.targets, batch.rows, batch.windows))
    return made


class Spanned(Answers):
    def forward(self, logits: torch.Tensor, context_mask: torch.Tensor) -> Any:
        return super().forward(logits)


@pytest.mark.parametrize("tokens", [1, 60, 10**6])
@pytest.mark.parametrize("unanswerable", [False, True])
def test_a_network_that_knows_everything(tokenizer: Any, tokens: int, unanswerable: bool) -> None:
    encoded = encode(questions(unanswerable=unanswerable), tokenizer, max_length=19)
    assert len(encoded) > 2  # windows
    made = told(encoded, tokens)
    assert encoded.windows.texts(predict_spans(Spanned(), made)) == ["red cat", "green"]
    metric = "squad_v2_f1" if unanswerable else "squad_f1"
    assert measure_error(Spanned(), made, metric=metric) == 0.0


def test_half_an_answer_is_half_an_error(tokenizer: Any) -> None:
    made = told(encode(questions(), tokenizer, max_length=64), 10**6)
    (batch,) = made
    (row,) = np.flatnonzero(batch.rows == 0)
    first, last = batch.targets[row]
    batch.inputs["logits"][row, 0, first], batch.inputs["logits"][row, 0, last] = 0, 10  # "cat" for "red cat"
    assert batch.windows.texts(predict_spans(Spanned(), made)) == ["cat", "green"]
    assert measure_error(Spanned(), made, metric="squad_f1") == pytest.approx(1 - (2 / 3 + 1) / 2)
    assert measure_error(Spanned(), made, metric="squad_exact") == 0.5


def test_answers_of_nan_fail(tokenizer: Any) -> None:
    made = told(encode(questions(), tokenizer, max_length=64), 10**6)
    made[0].inputs["logits"][0, 0, 3] = torch.nan
    with pytest.raises(Failed, match="NaN or infinity"):
        measure_error(Spanned(), made, metric="squad_f1")


SIZE = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48, "num_hidden_layers": 2}


def tiny(kind: str, vocabulary: int) -> PrunedNetwork:
    """A new network of two layers for this kind of task."""
    stock: Any = BertConfig(**SIZE, vocab_size=vocabulary, max_position_embeddings=64)
    if kind == "lm":
        stock = GPT2Config(n_embd=32, n_head=4, n_layer=2, vocab_size=vocabulary, n_positions=64)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return network_class(kind)(supernet_config(stock, kind=kind)).eval()


def few_words(*parts: Encoded) -> tuple[int, list[Encoded]]:
    """The same with ids from 0 to as many as occur, and their number: a small vocabulary learns fast."""
    known = np.unique(np.concatenate([part.ids for part in parts]))
    smaller = [replace(part, ids=np.searchsorted(known, part.ids).astype(np.int32)) for part in parts]
    return len(known), smaller


def learned(network: PrunedNetwork, encoded: Encoded, *, epochs: int, rate: float = 3e-3) -> PrunedNetwork:
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate)
    for epoch in range(epochs):
        for batch in batches(encoded, batch_size=16, rng=np.random.default_rng(epoch)):
            optimizer.zero_grad()
            task_loss(network(**batch.inputs).logits, batch.targets).backward()
            optimizer.step()
    return network


def choice_task(folder: Path) -> Task:
    return load_task(train=write_choices(folder / "c.csv", 400), choice_columns=COLUMNS)


def squad_task(data_dir: Path) -> Task:
    return load_task("squad", data=data_dir / "squad", train_rows=20, validation_rows=30)


KINDS: dict[str, Callable[[Path, Path], Task]] = {
    "choice": lambda folder, data_dir: choice_task(folder),
    "qa": lambda folder, data_dir: squad_task(data_dir),
    "lm": lambda folder, data_dir: load_task(
        "lm", train=data_dir / "wikitext-2" / "valid.txt", train_rows=20, validation_rows=20
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_sub_network_errs_as_when_extracted(kind: str, tmp_path: Path, data_dir: Path, tokenizer: Any) -> None:
    task, network = KINDS[kind](tmp_path, data_dir), tiny(kind, len(tokenizer))
    made = evaluation_batches(encode(task.splits["validation"], tokenizer, max_length=48), tokens=512)
    inside = measure_error(network, made, KEEP, metric=task.metric)
    assert inside == pytest.approx(measure_error(extract(network, KEEP), made, metric=task.metric), rel=1e-4)
    whole = measure_error(network, made, metric=task.metric)
    assert np.isfinite(whole) and (whole > 1000 if kind == "lm" else 0 <= whole <= 1)


@pytest.mark.slow
def test_the_generated_choices_can_be_learnt(tmp_path: Path, tokenizer: Any) -> None:
    task = choice_task(tmp_path)
    words, (train, test) = few_words(
        *(encode(task.splits[split], tokenizer, max_length=32) for split in ("train", "validation"))
    )
    network, held_out = tiny("choice", words), evaluation_batches(test, tokens=2000)
    assert predict(network, held_out).shape == (60,)
    before = measure_error(network, held_out, metric=task.metric)
    after = measure_error(learned(network, train, epochs=40), held_out, metric=task.metric)
    assert before > 0.5 and after < 0.2, f"{before} -> {after}"


@pytest.mark.slow
def test_questions_can_be_learnt_by_heart(data_dir: Path, tokenizer: Any) -> None:
    task = squad_task(data_dir)
    words, (encoded,) = few_words(encode(task.splits["train"], tokenizer, max_length=64))
    network = tiny("qa", words)
    made = evaluation_batches(encoded, tokens=2000)
    before = measure_error(network, made, metric=task.metric)
    after = measure_error(learned(network, encoded, epochs=30), made, metric=task.metric)
    assert before > 0.7 and after < 0.2, f"{before} -> {after}"


@pytest.mark.slow
def test_perplexity_falls_with_training(data_dir: Path, tokenizer: Any) -> None:
    task = KINDS["lm"](data_dir, data_dir)
    words, (encoded,) = few_words(encode(task.splits["train"], tokenizer, max_length=32))
    encoded = replace(encoded, targets=next_tokens(encoded.ids.reshape(-1, 32)))
    network = tiny("lm", words)
    made = evaluation_batches(encoded, tokens=512)
    before = measure_error(network, made, metric=task.metric)
    after = measure_error(learned(network, encoded, epochs=30, rate=1e-2), made, metric=task.metric)
    assert before > 0.8 * words and after < 20, f"{before} -> {after}"
