"""A sub-network beside the original on every kind of task: texts that are tried, and where both differ on test rows.

The oracle is the run itself: what the comparison says of all rows must be the test errors that the run reports.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from archwright.compression.inspection import MOST_CHARACTERS, answer_question
from archwright.errors import BadInput
from archwright.networks.sentence_encoder import write_sentence_encoder
from archwright.tasks import TASK_KINDS
from tests.compression.runs import PLAIN, compressed, saved_model, sentence, table_file
from tests.compression.test_kinds import choices_file, decoder, label_sets, passage, squad_file

SIDES = ("original", "subnetwork")
SHORT: dict[str, Any] = {"trials": 3, "epochs": 1.0, "learning_rate": 3e-3}


def ask(run: Any, question: str, **more: Any) -> dict[str, Any]:
    """As the live page does, and as JSON."""
    answer = answer_question(question, str(run.folder.path), run.front[0]["trial"], **more)
    return dict(json.loads(json.dumps(answer, allow_nan=False)))


def errors(run: Any) -> dict[str, float]:
    return {"original": run.result["original"]["test_error"], "subnetwork": run.front[0]["test_error"]}


def net_loss(found: dict[str, Any]) -> float:
    """Share of rows that were lost, less those that were won."""
    changes = [row["change"] for row in found["different"]]
    assert len(changes) == round(found["rows"] * (1 - found["agreement"])) < 100  # all of them are shown
    assert changes == sorted(changes, key=["lost", "", "won"].index)
    return (changes.count("lost") - changes.count("won")) / found["rows"]


def test_every_kind_of_task_has_a_way_to_answer_and_to_compare() -> None:
    for name, kind in TASK_KINDS.items():
        assert kind.answer is not None and callable(kind.answer.load()), name
        assert kind.compare is not None and callable(kind.compare.load()), name
        assert kind.asked[0], name


def test_classes(run: Any) -> None:
    found = ask(run, "inspect")
    rows, own = found["classes"]["rows"], errors(run)
    for side in SIDES:
        matrix = np.array(found["confusion"][side])
        assert 1 - np.trace(matrix) / matrix.sum() == pytest.approx(own[side])
        assert sum(row["count"] * row[side] for row in rows) / found["rows"] == pytest.approx(own[side])
    assert net_loss(found) == pytest.approx(own["subnetwork"] - own["original"])
    for row in found["different"][:5]:  # who types the text sees the same
        tried = ask(run, "try", text=row["text"])
        for side in SIDES:
            assert max(tried[side]["labels"], key=tried[side]["labels"].get) == row[side]


@pytest.mark.parametrize("text", ["", "  \n", "x" * (MOST_CHARACTERS + 1)])
def test_a_text_has_some_characters_and_not_too_many(run: Any, text: str) -> None:
    with pytest.raises(BadInput, match="1 to 5,000 characters"):
        ask(run, "try", text=text)
    with pytest.raises(BadInput, match="1 to 5,000 characters"):
        ask(run, "try", text="fine", pair_text="x" * (MOST_CHARACTERS + 1))


@pytest.mark.slow
def test_numbers(bert: Path, tmp_path: Path) -> None:
    rows = table_file(tmp_path / "rows.csv")
    columns = {"text_column": "text", "text_pair_column": "other", "label_column": "score"}
    run = compressed(tmp_path / "run", model=str(bert), train=rows, **columns, **SHORT)
    found = ask(run, "inspect")
    assert found["classes"] is None and "no classes" in found["note"]
    assert len(found["different"]) == found["rows"]
    apart = [abs(row["original"] - row["subnetwork"]) for row in found["different"]]
    assert apart == pytest.approx(sorted(apart, reverse=True), abs=2e-4)  # shown with four digits
    first, second = found["different"][0]["text"].split(" ⏐ ")
    tried = ask(run, "try", text=first, pair_text=second)
    for side in SIDES:
        assert tried[side]["value"] == pytest.approx(found["different"][0][side], abs=1e-3)


@pytest.mark.slow
def test_label_sets(bert: Path, tmp_path: Path) -> None:
    rows = label_sets(tmp_path / "rows.jsonl")
    run = compressed(tmp_path / "run", model=str(bert), train=rows, **{**SHORT, "original_epochs": 8.0})
    found = ask(run, "inspect")
    classes = {row["name"]: row for row in found["classes"]["rows"]}
    assert set(classes) == {"old", "new", "music"} and found["classes"]["measure"] == "F1"
    assert all(0 <= row[side] <= 1 for row in classes.values() for side in SIDES)
    net_loss(found)
    tried = ask(run, "try", text="the new film with music")
    for side in SIDES:
        assert set(tried[side]["labels"]) == set(classes) and set(tried[side]["given"]) <= set(classes)


@pytest.mark.slow
def test_choices(bert: Path, tmp_path: Path) -> None:
    rows = choices_file(tmp_path / "rows.jsonl")
    run = compressed(tmp_path / "run", model=str(bert), train=rows, choice_columns=("a", "b", "c"), **SHORT)
    rows.unlink()  # a finished run needs no file of the user's
    found, own = ask(run, "inspect"), errors(run)
    assert found["classes"] is None and "no classes" in found["note"]
    tried = ask(run, "try", text="the film", pair_text="good\nbad\n\n fine ")
    for side in SIDES:
        assert set(tried[side]["labels"]) == {"good", "bad", "fine"}
        assert sum(tried[side]["labels"].values()) == pytest.approx(1.0, abs=1e-5)
    with pytest.raises(BadInput, match="2 to 20 choices, one per line, got 1"):
        ask(run, "try", text="the film", pair_text="good")
    assert own["original"] <= 1 and len(found["different"]) <= found["rows"]


def test_answers_to_questions(bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "squad"
    folder.mkdir()
    squad_file(folder / "train-v1.1.json", 60)
    squad_file(folder / "dev-v1.1.json", 20)
    run = compressed(tmp_path / "run", model=str(bert), task="squad", data=folder, **SHORT)
    found, own = ask(run, "inspect"), errors(run)
    (row,) = found["classes"]["rows"]
    assert row["name"] == "what" and row["count"] == found["rows"] == run.result["rows"]["test"]
    for side in SIDES:
        assert 1 - row[side] == pytest.approx(own[side])
    tried = ask(run, "try", text="what is the answer", pair_text="the film is number3 and old")
    for side in SIDES:
        assert tried[side]["answer"] in "the film is number3 and old" and tried[side]["milliseconds"] > 0
    with pytest.raises(BadInput, match="give it as the second one"):
        ask(run, "try", text="what is the answer")


def test_tags(bert: Path, tmp_path: Path) -> None:
    rng, lines = np.random.default_rng(0), []
    for _ in range(90):
        words = sentence(rng, ("good",)).replace("good", "good great").split()
        tags = {"good": "B-praise", "great": "I-praise"}
        lines.append("".join(f"{word}\t{tags.get(word, 'O')}\n" for word in words) + "\n")
    (tmp_path / "tags.conll").write_text("".join(lines))
    options = {**SHORT, "original_epochs": 8.0}
    run = compressed(tmp_path / "run", model=str(bert), train=tmp_path / "tags.conll", **options)
    found, own = ask(run, "inspect"), errors(run)
    (row,) = found["classes"]["rows"]  # one type of span: its F1 is the whole
    assert row["name"] == "praise"
    for side in SIDES:
        assert 1 - row[side] == pytest.approx(own[side])
    for different in found["different"]:
        words = different["target"].split(", ")
        assert all(word.split()[0] in different["text"].split() for word in words)
        assert different["original"] != different["subnetwork"]
    tried = ask(run, "try", text="the film is good great and old")
    for side in SIDES:
        assert [word for word, _, _ in tried[side]["words"]] == ["the", "film", "is", "good", "great", "and", "old"]
        assert {tag for _, tag, _ in tried[side]["words"]} <= {"O", "B-praise", "I-praise"}


def test_language_models(minilm: Path, tmp_path: Path) -> None:
    files = {name: passage(tmp_path / f"{name}.txt", 150, seed) for seed, name in enumerate(("train", "validation"))}
    model = decoder(tmp_path / "model", minilm, "llama")
    options: dict[str, Any] = {"max_length": 24, "batch_size": 4, **SHORT}
    run = compressed(tmp_path / "run", model=str(model), task="lm", **files, **options)
    found, own = ask(run, "inspect"), errors(run)
    assert len(found["different"]) == found["rows"] == run.result["rows"]["test"]
    for side in SIDES:  # blocks are of equal length: the perplexity is the geometric mean
        mean = np.mean([np.log(row[side]) for row in found["different"]])
        assert float(np.exp(mean)) == pytest.approx(own[side], rel=1e-4)
    rise = [row["subnetwork"] / row["original"] for row in found["different"]]
    assert rise == sorted(rise, reverse=True)
    tokens = found["classes"]["rows"]
    assert tokens and all(row["count"] >= 3 and row["original"] > 0 for row in tokens)
    assert any(repr(word) == row["name"] for row in tokens for word in (*PLAIN, "."))
    tried = ask(run, "try", text="the film is")
    for side in SIDES:
        assert 0 < tried[side]["tokens"] <= 40 and tried[side]["written"] and tried[side]["seconds"] > 0


@pytest.fixture(scope="module")
def encoder(place: Path, minilm: Path) -> Path:
    folder = saved_model(place / "inspected-encoder", minilm)
    write_sentence_encoder(folder, pooling="mean", width=48, sentence={"normalize": True, "max_seq_length": 40})
    return folder


@pytest.mark.slow
def test_scored_pairs_of_texts(encoder: Path, tmp_path: Path) -> None:
    rng, lines = np.random.default_rng(0), []
    for _ in range(120):
        one, other = sentence(rng, PLAIN), sentence(rng, PLAIN)
        lines.append(json.dumps({"sentence1": one, "sentence2": other, "score": round(float(rng.random()), 3)}) + "\n")
    (tmp_path / "pairs.jsonl").write_text("".join(lines))
    run = compressed(tmp_path / "run", model=str(encoder), task="embeddings", train=tmp_path / "pairs.jsonl", **SHORT)
    found, own = ask(run, "inspect"), errors(run)
    rows = found["different"]
    assert len(rows) == found["rows"]
    for side in SIDES:
        correlation = spearmanr([row["target"] for row in rows], [row[side] for row in rows]).statistic
        assert 1 - correlation == pytest.approx(own[side], abs=0.02)  # shown with four digits, some of them equal
    one, other = rows[0]["text"].split(" ⏐ ")
    tried = ask(run, "try", text=one, pair_text=other)
    for side in SIDES:
        assert tried[side]["similarity"] == pytest.approx(rows[0][side], abs=1e-3)
    with pytest.raises(BadInput, match="give a second text"):
        ask(run, "try", text=one)


@pytest.mark.slow
def test_texts_without_scores(encoder: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    (tmp_path / "plain.txt").write_text("".join(f"{sentence(rng, PLAIN)}\n" for _ in range(150)))
    run = compressed(tmp_path / "run", model=str(encoder), task="embeddings", train=tmp_path / "plain.txt", **SHORT)
    found = ask(run, "inspect")
    alike = [row["subnetwork"] for row in found["different"]]
    assert alike == sorted(alike) and -1 <= alike[0] <= alike[-1] <= 1.0001 and "least alike" in found["note"]
