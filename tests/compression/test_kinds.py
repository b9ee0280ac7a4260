"""`compress`, `select` and `export` on every kind of task: language modelling, multiple choice, question answering."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import archwright as aw
from archwright.compression.methods import load_evaluator
from archwright.compression.result import best_constant_labels
from archwright.data.batching import batch_of
from archwright.errors import BadInput
from archwright.training.evaluation import label_set_scores
from tests.compression.runs import PLAIN, POSITIONS, compressed, sentence, study_of, table_file
from tests.statistics.test_spans import read_spans

WIDTH = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": POSITIONS}
DECODERS: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_inner": 48, "n_positions": POSITIONS},
    "llama": {**WIDTH, "num_key_value_heads": 2, "intermediate_size": 48},
    "qwen2": {**WIDTH, "num_key_value_heads": 2, "intermediate_size": 48},
    "qwen3": {**WIDTH, "num_key_value_heads": 2, "intermediate_size": 48, "head_dim": 16},
    "mistral": {**WIDTH, "num_key_value_heads": 2, "intermediate_size": 48, "head_dim": 8},
}


def decoder(folder: Path, minilm: Path, family: str) -> Path:
    """A random language model with MiniLM's tokenizer."""
    tokenizer = AutoTokenizer.from_pretrained(minilm)
    words = {"vocab_size": len(tokenizer), "bos_token_id": 101, "eos_token_id": 102, "pad_token_id": 0}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(CONFIG_MAPPING[family](**words, **DECODERS[family]))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def passage(path: Path, lines: int, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    path.write_text("".join(f"{sentence(rng, PLAIN)} .\n" for _ in range(lines)))
    return path


@pytest.fixture(scope="module")
def texts(place: Path) -> dict[str, Any]:
    files = {name: passage(place / f"{name}.txt", 150, seed) for seed, name in enumerate(("train", "validation"))}
    return {"task": "lm", **files, "max_length": 24, "batch_size": 4, "learning_rate": 3e-3}


@pytest.mark.parametrize("family", DECODERS)
def test_a_language_model_shrinks_and_still_writes(
    family: str, minilm: Path, texts: dict[str, Any], tmp_path: Path
) -> None:
    run = compressed(tmp_path / "run", model=str(decoder(tmp_path / "model", minilm, family)), **texts)
    result = run.result
    assert result["metric"] == "perplexity"
    assert 1 < result["original"]["validation_error"] < 30522  # guessing
    assert 0 < result["hypervolume"] < 1
    entry = run.front[0]
    report = run.member(entry["trial"]).save_pretrained(tmp_path / "out")
    assert report["difference"]["largest"] <= 1e-4 * max(1.0, report["difference"]["largest_logit"])
    network = run.member(entry["trial"]).network
    ids = torch.tensor([[101, 1996, 2143]])
    once, again = (network.generate(ids, max_new_tokens=6, do_sample=False, use_cache=c) for c in (True, False))
    assert torch.equal(once, again)
    assert once.shape[1] > 3


@pytest.mark.parametrize("method", ["magnitude", "retraining-free", "layer-dropping"])
def test_baselines_prune_language_models(method: str, minilm: Path, texts: dict[str, Any], tmp_path: Path) -> None:
    model = decoder(tmp_path / "model", minilm, "llama")
    options = {"original_epochs": 1.0, "trials": 4, "rounds": 3, "threads": 1, "method": method}
    run = aw.compress(**texts, **options, model=str(model), out=tmp_path / "run")
    assert run.front
    assert all(entry["validation_error"] > 1 for entry in run.front)


@pytest.fixture(scope="module")
def language_run(place: Path, minilm: Path, texts: dict[str, Any]) -> Any:
    return compressed(place / "lm", model=str(decoder(place / "model", minilm, "llama")), **texts)


def test_language_models_are_searched_by_the_scaled_error_and_told_by_perplexity(language_run: Any) -> None:
    rows = {row["trial"]: row for row in language_run.result["trials"]}
    trials = study_of(language_run.folder.path).trials
    assert all(0 < trial.values[0] < 2 for trial in trials)  # 1: as bad as guessing
    for trial in trials:
        perplexity = rows[trial.number]["validation_error"]
        assert perplexity == rows[trial.number]["values"][0] == pytest.approx(30522 ** trial.values[0])
    evaluator = load_evaluator(language_run.folder)
    for entry in language_run.front:
        told = evaluator.error(entry["config"], evaluator.context.holdout_rows)
        assert entry["validation_error"] == pytest.approx(told, rel=1e-9)


def test_a_run_whose_study_holds_perplexities_goes_on_with_them(
    language_run: Any, minilm: Path, texts: dict[str, Any], tmp_path: Path
) -> None:
    """As runs of versions before the scaled error left them."""
    folder = tmp_path / "run"
    shutil.copytree(language_run.folder.path, folder)
    trials, rows = study_of(folder).trials, {row["trial"]: row for row in language_run.result["trials"]}
    for name in ("study.journal", "scaled_error.json"):
        (folder / name).unlink()
    study = study_of(folder)
    for trial in trials:
        trial.values = rows[trial.number]["values"]
        study.add_trial(trial)
    options = {**texts, "model": language_run.result["model"], "trials": len(trials) + 2}
    again = compressed(folder, **options).result["trials"]
    assert [row["validation_error"] for row in again[: len(trials)]] == [trial.values[0] for trial in trials]
    assert [trial.values[0] for trial in study_of(folder).trials] == [row["validation_error"] for row in again]


def test_query_heads_may_go_instead_of_groups(minilm: Path, texts: dict[str, Any], tmp_path: Path) -> None:
    model = str(decoder(tmp_path / "model", minilm, "llama"))
    run = compressed(tmp_path / "run", model=model, **texts, grouping="queries")
    assert run.result["heads"] == 2
    run.member(run.front[0]["trial"]).save_pretrained(tmp_path / "out", to="hf-padded")
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert loaded.config.model_type == "llama"


def choices_file(path: Path, rows: int = 60) -> Path:
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(rows):
        answer = int(rng.integers(3))
        options = {name: "good" if place == answer else "bad" for place, name in enumerate("abc")}
        lines.append(json.dumps({"text": sentence(rng, PLAIN), **options, "label": answer}) + "\n")
    path.write_text("".join(lines))
    return path


def test_multiple_choice(bert: Path, tmp_path: Path) -> None:
    rows = choices_file(tmp_path / "rows.jsonl")
    run = compressed(tmp_path / "run", model=str(bert), train=rows, choice_columns=("a", "b", "c"))
    assert run.result["metric"] == "accuracy"
    report = run.member(run.front[0]["trial"]).save_pretrained(tmp_path / "out")
    assert report["difference"]["largest"] <= 1e-5


def squad_file(path: Path, questions: int) -> Path:
    rng = np.random.default_rng(len(path.name))
    paragraphs = []
    for place in range(questions):
        context = f"{sentence(rng, PLAIN)} the answer is number{place % 7} {sentence(rng, PLAIN)}"
        answer = {"text": f"number{place % 7}", "answer_start": context.index("number")}
        asked = {"id": f"{path.stem}-{place}", "question": "what is the answer", "answers": [answer]}
        paragraphs.append({"context": context, "qas": [asked]})
    path.write_text(json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}))
    return path


def test_question_answering(bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "squad"
    folder.mkdir()
    squad_file(folder / "train-v1.1.json", 60)
    squad_file(folder / "dev-v1.1.json", 20)
    run = compressed(tmp_path / "run", model=str(bert), task="squad", data=folder)
    assert run.result["metric"] == "squad_f1"
    report = run.member(run.front[0]["trial"]).save_pretrained(tmp_path / "out")
    assert report["difference"]["largest"] <= 1e-5


def tagged_file(path: Path, rows: int = 90, *, spans: bool = True) -> Path:
    """Sentences in which two words tell what they are, one word after the other."""
    rng = np.random.default_rng(0)
    marks = {"good": "B-praise", "great": "I-praise", "bad": "B-blame"} if spans else {"good": "ADJ", "film": "NOUN"}
    sentences = []
    for row in range(rows):
        words = sentence(rng, ("bad",) if row % 3 == 0 else ("good",)).replace("good", "good great").split()
        sentences.append("".join(f"{word}\t{marks.get(word, 'O')}\n" for word in words) + "\n")
    path.write_text("".join(sentences))
    return path


@pytest.fixture(scope="module")
def tagged_run(place: Path, bert: Path) -> Any:
    options = {"original_epochs": 12.0, "epochs": 3.0, "learning_rate": 3e-3}
    return compressed(place / "tags", model=str(bert), train=tagged_file(place / "tags.conll"), **options)


def test_token_classification(tagged_run: Any, tmp_path: Path) -> None:
    result = tagged_run.result
    assert result["metric"] == "entity_f1" and "entity F1" in result["task_note"]
    assert result["original"]["test_error"] < 0.5 < result["constant"]["test_error"]
    entry = tagged_run.front[0]
    assert entry["loss"]["low"] <= entry["loss"]["value"] <= entry["loss"]["high"]
    report = tagged_run.member(entry["trial"]).save_pretrained(tmp_path / "out")
    assert report["difference"]["largest"] <= 1e-5
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert set(config["id2label"].values()) == {"O", "B-praise", "I-praise", "B-blame"}
    assert "token-classification" in (tmp_path / "out" / "README.md").read_text()


def test_the_error_of_a_member_is_its_entity_f1_by_hand(tagged_run: Any) -> None:
    evaluator = load_evaluator(tagged_run.folder)
    data, entry = evaluator.context.task_data, tagged_run.front[-1]
    network = evaluator.extract(entry["config"])
    names, right, total = data.task.labels, 0, 0
    for row, words in enumerate(data.task.splits["test"].words):
        batch = batch_of(data.encoded["test"], np.array([row]))
        with torch.no_grad():
            answers = network(**batch.inputs).logits[0].argmax(-1)
        wanted = data.task.splits["test"].tags[row].tolist()
        places = (batch.targets[0] != -100).nonzero().flatten()
        assert len(places) == len(words)
        guess, truth = (read_spans([names[i] for i in ids]) for ids in (answers[places].tolist(), wanted))
        right, total = right + 2 * len(guess & truth), total + len(guess) + len(truth)
    assert entry["test_error"] == pytest.approx(1 - right / total if total else 1.0)


@pytest.mark.slow
def test_tags_that_mark_no_spans(bert: Path, tmp_path: Path) -> None:
    rows = tagged_file(tmp_path / "pos.conll", spans=False)
    run = compressed(
        tmp_path / "run", model=str(bert), train=rows, vocabulary="task", teacher="in-place", strategy="full"
    )
    assert run.result["metric"] == "token_accuracy"
    assert 0 < run.result["constant"]["test_error"] < 1
    picked = aw.select(run=run.folder.path, params="90%", recover_epochs=0.5, to="hf-padded", out=tmp_path / "out")
    assert picked.as_json()


def label_sets(path: Path, rows: int = 120) -> Path:
    """Texts with a telling word per label, as lists, a|b or columns of 0 and 1 by the name of the file."""
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(rows):
        labels = [name for name in ("old", "new", "music") if rng.random() < 0.4]
        words = [word for word in sentence(rng, ("good",)).split() if word not in ("old", "new", "music")]
        text = " ".join(rng.permutation(words + labels))
        switches = {name: int(name in labels) for name in ("old", "new", "music")}
        lines.append({"text": text, "labels": labels, "joined": "|".join(labels), **switches})
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({k: line[k] for k in ("text", "labels")}) + "\n" for line in lines))
    else:
        names = ["text", "joined", "old", "new", "music"]
        path.write_text("\n".join([",".join(names), *(",".join(str(line[n]) for n in names) for line in lines)]))
    return path


@pytest.fixture(scope="module")
def several_run(place: Path, bert: Path) -> Any:
    options = {"original_epochs": 15.0, "epochs": 3.0, "learning_rate": 3e-3, "validation_rows": 0}
    rows = label_sets(place / "several.jsonl", 300)
    return compressed(place / "several", model=str(bert), train=rows, pooling="mean", **options)


def test_several_labels_per_text(several_run: Any, tmp_path: Path) -> None:
    result = several_run.result
    assert result["metric"] == "micro_f1"
    assert result["original"]["test_error"] < 0.1 < result["constant"]["test_error"]
    trial = several_run.front[-1]["trial"]
    for to in ("compact", "hf-padded"):
        several_run.member(trial).save_pretrained(tmp_path / to, to=to)
        config = json.loads((tmp_path / to / "config.json").read_text())
        assert config["problem_type"] == "multi_label_classification"
        assert set(config["thresholds"]) == set(config["id2label"].values()) == {"old", "new", "music"}
        assert "thresholds: music" in (tmp_path / to / "README.md").read_text()
    code = (tmp_path / "hf-padded" / "README.md").read_text().split("```python\n")[1].split("```")[0]
    printed: list[Any] = []
    code = code.replace('"a text"', '"the new film with music"').replace(
        '"hf-padded"', repr(str(tmp_path / "hf-padded"))
    )
    exec(code, {"print": printed.append})
    assert sorted(printed[0]) == ["music", "new"]


def test_thresholds_come_from_rows_that_do_not_judge(several_run: Any) -> None:
    evaluator = load_evaluator(several_run.folder)
    data, entry = evaluator.context.task_data, several_run.front[-1]
    network, search = evaluator.extract(entry["config"]), evaluator.context.search_rows
    assert data.threshold_rows is search
    thresholds = data.thresholds(network)
    right = total = 0.0
    for batch in data.test:
        with torch.no_grad():
            given = network(**batch.inputs).logits.double().sigmoid().numpy() > thresholds
        wanted = batch.targets.numpy() > 0
        right, total = right + 2 * (given & wanted).sum(), total + given.sum() + wanted.sum()
    assert entry["test_error"] == pytest.approx(1 - right / total)


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", [{"task": "multi-label", "label_column": "joined"}, {"label_columns": ("old", "new", "music")}]
)
def test_labels_in_one_column_or_in_several(way: dict[str, Any], bert: Path, tmp_path: Path) -> None:
    run = compressed(tmp_path / "run", model=str(bert), train=label_sets(tmp_path / "rows.csv"), trials=2, **way)
    assert run.result["metric"] == "micro_f1" and run.front


OWN_METRIC = """
def balanced(labels, predictions, logits):
    assert logits.shape == (len(labels), 2)
    return sum((predictions[labels == k] == k).mean() if (labels == k).any() else 0 for k in (0, 1)) / 2
"""


def test_a_metric_of_the_users_own_and_class_weights(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "own.py").write_text(OWN_METRIC)
    options = {"train": table_file(tmp_path / "rows.csv", 120), "class_weights": ("1", "2")}
    monkeypatch.chdir(tmp_path)
    run = compressed(tmp_path / "run", model=str(bert), metric="own.py:balanced", **options)
    assert run.result["metric"] == "own.py:balanced" and "class weights: bad 1, good 2" in caplog.text
    evaluator = load_evaluator(run.folder)
    data, entry = evaluator.context.task_data, run.front[-1]
    assert data.task.metric == f"{tmp_path / 'own.py'}:balanced" and data.class_weights == (1.0, 2.0)
    network, right = evaluator.extract(entry["config"]), []
    for label in (0, 1):
        rows = [(batch, batch.targets == label) for batch in data.test]
        with torch.no_grad():
            answers = torch.cat([network(**batch.inputs).logits.argmax(-1)[mask] for batch, mask in rows])
        right.append(float((answers == label).float().mean()))
    assert entry["test_error"] == pytest.approx(1 - sum(right) / 2)
    assert entry["loss"]["low"] <= entry["loss"]["value"] <= entry["loss"]["high"]
    assert run.result["constant"]["test_error"] == pytest.approx(0.5)
    run.member(entry["trial"]).save_pretrained(tmp_path / "out")
    assert "own.py:balanced 0." in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.parametrize("metric", ["roc_auc", "macro_f1", "accuracy"])
def test_other_metrics_of_label_sets(metric: str, several_run: Any) -> None:
    """On the networks of one run, whose metric is another one."""
    evaluator = load_evaluator(several_run.folder)
    data = evaluator.context.task_data
    judged = replace(data, task=replace(data.task, metric=metric))
    network = evaluator.extract(several_run.front[-1]["config"])
    scores = label_set_scores(data, network, data.test)
    error = judged.error(network, judged.test)
    assert error == pytest.approx(1 - scores[metric]) if metric in scores else 0 <= error < 0.5
    constant = best_constant_labels(replace(evaluator.context, task_data=judged))
    assert error < constant["test_error"] <= 1


def test_an_encoder_cannot_model_language(bert: Path, texts: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="language"):
        compressed(tmp_path / "run", model=str(bert), **texts)
    assert not (tmp_path / "run").exists()


def test_a_decoder_without_its_language_modelling_head(minilm: Path, texts: dict[str, Any], tmp_path: Path) -> None:
    folder = decoder(tmp_path / "model", minilm, "gpt2")
    AutoModelForCausalLM.from_pretrained(folder).base_model.save_pretrained(folder)
    with pytest.raises(BadInput, match="head"):
        compressed(tmp_path / "run", model=str(folder), **texts)
    assert not (tmp_path / "run").exists()
