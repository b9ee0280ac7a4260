"""The parts of design: counts that bound a search, pictures, one-shot search, and the bench."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import archwright as aw
from archwright.configs import design as do
from archwright.configs.training import TrainConfig
from archwright.data.encoding import NO_TARGET
from archwright.designing import one_shot_teaching
from archwright.designing.limits import DesignLimits
from archwright.designing.one_shot import load_stages
from archwright.designing.one_shot_objectives import HiddenWordsObjective, load_objective, load_task_objective
from archwright.designing.one_shot_teaching import load_task_stage, load_text_stage
from archwright.designing.prefix_cache import LayerRuns
from archwright.designing.report import leanings, shares
from archwright.errors import BadInput, Failed
from archwright.networks.nlu.supernet import path
from archwright.spaces import ARCHITECTURES
from archwright.spaces.nlu import NluSpace
from archwright.store import begin_run
from archwright.training.pipeline import run_options
from archwright.training.recipes import PRESETS
from experiments.speed.design import Round, bench_design, ratios, same
from experiments.speed.ratios import BenchConfig
from tests.training.pipeline.tables import glue_folder, squad_folder

SPACE = NluSpace("tiny")


@pytest.mark.parametrize("space", ARCHITECTURES)
def test_no_random_design_is_smaller_than_the_smallest(space: str) -> None:
    of = ARCHITECTURES[space]
    least = of.counts(of.canonical(DesignLimits(of).smallest("parameters"))).parameters
    rng = np.random.default_rng(0)
    assert least <= min(of.counts(of.sample(rng)).parameters for _ in range(20))


@pytest.mark.parametrize("space", ARCHITECTURES)
def test_every_design_has_layers_to_draw(space: str) -> None:
    of = ARCHITECTURES[space]
    layers = of.layers(of.sample(np.random.default_rng(0)))
    assert layers and all({"kind", "width", "label"} == set(layer) for layer in layers)
    json.dumps(layers)


def test_two_limits_that_exclude_each_other() -> None:
    space = ARCHITECTURES["nlu-tiny"]
    least = {name: DesignLimits(space).smallest(name) for name in ("parameters", "flops")}
    counts = {name: space.counts(config) for name, config in least.items()}
    limits = do.LimitOptions(str(counts["parameters"].parameters), str(counts["flops"].flops))
    bounds = DesignLimits.from_options(space, limits).bounds()
    assert bounds is not None and bounds.allowed(bounds.within)


def test_shares_and_leanings_by_hand() -> None:
    base, mobile = {"kind": "base"}, {"kind": "mobile"}
    designs = [[base, base, mobile, mobile], [base, mobile, mobile, mobile]]
    assert shares(designs)[1] == {"base": 0.5, "mobile": 0.5} and shares(designs)[3] == {"base": 0.0, "mobile": 1.0}
    assert leanings(designs)["mobile"] == {"all": 5 / 8, "lower": 1 / 4, "upper": 1.0}
    assert shares([[base], [base, mobile]])[1] == {"base": 0.0, "mobile": 1.0}


def test_the_ratio_is_that_of_the_whole_search() -> None:
    rounds = [Round(2.0, 1.0, 10, 10), Round(1.0, 1.0, 10, 5)]
    whole, seen, layers = ratios(rounds, LayerRuns(run=50, requested=90), parts=2)
    assert whole.median == pytest.approx(20 / 3) and (whole.low, whole.high) == (5.0, 10.0)
    assert seen.median == pytest.approx(20 / 15) and layers.median == pytest.approx(1.8)


def test_the_bench_searches_and_compares(monkeypatch: pytest.MonkeyPatch, data_dir: Path) -> None:
    monkeypatch.setenv("ARCHWRIGHT_DATA", str(data_dir))
    found = bench_design(BenchConfig("design"), do.DesignSearchOptions(population=3, generations=2), "nlu-tiny")
    assert all(0 < ratio.low <= ratio.median <= ratio.high for ratio in found)
    assert found[2].median >= 1, "layers asked for / layers run counts work, not time"


def test_the_bench_notices_a_wrong_score(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    monkeypatch.setattr("experiments.speed.design.score_network", lambda at: SimpleNamespace(scores={"w_pca": 100.0}))
    same(None, [100.0])  # type: ignore[arg-type]
    with pytest.raises(Failed, match="from nothing 100"):
        same(None, [100.1])  # type: ignore[arg-type]


SHORT = {"method": "spos", "steps": 2, "batch_size": 2, "validation_rows": 4, "population": 2, "generations": 2}
ALONE = {"teacher": "none"}


def shot(options: dict[str, Any], *idle: str) -> dict[str, Any]:
    """Options of a search by one shot; those of proxies are none of them."""
    return {name: value for name, value in options.items() if name not in ("batch_rows", "workers", *idle)} | SHORT


def test_one_shot_search_trains_once_and_judges_paths(options: dict[str, Any]) -> None:
    once = aw.design(**shot(options), **ALONE).as_json()
    (weights,) = options["out"].glob("supernet-*.safetensors")
    written = weights.stat().st_mtime_ns
    again = aw.design(**shot(options), **ALONE).as_json()
    assert once["proxies"] == ["validation accuracy of hidden words"] and 0 <= once["score"] <= 1
    assert again["history"] == once["history"] and again["judged"]["looked"] == 0
    assert weights.stat().st_mtime_ns == written


def test_two_stages_of_a_taught_super_network(
    options: dict[str, Any], bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The teacher's states on text, then its states and answers on a task; the first stage serves other tasks too."""
    glue, words = glue_folder(tmp_path / "glue", rows=60), {**shot(options), "teacher": str(bert), "batch_size": 8}
    on_text = aw.design(**words).as_json()
    assert on_text["proxies"] == ["validation layer loss, negative"] and on_text["score"] < 0
    (first,) = options["out"].glob("supernet-*.safetensors")
    written = first.stat().st_mtime_ns
    on_task = aw.design(**words, task="glue/RTE", data=glue).as_json()
    text, task = on_task["judged"]["stages"]
    assert first.stat().st_mtime_ns == written and len(list(options["out"].glob("supernet-*.safetensors"))) == 2
    assert text["learning_rate"] == 1e-4 and task["learning_rate"] == 4e-4 and text["steps"] == task["steps"] == 2
    assert task["rows"] == 54 and on_task["proxies"] == ["validation accuracy"] and 0 <= on_task["score"] <= 1
    assert len(list(options["out"].glob("teacher-*/model"))) == 1
    assert on_task["judged"]["training_seconds"] > on_text["judged"]["training_seconds"] > 0
    monkeypatch.setattr("archwright.designing.one_shot.train_network", None)  # nothing is trained again
    again = aw.design(**words, task="glue/RTE", data=glue).as_json()
    assert again["history"] == on_task["history"] and again["judged"]["looked"] == 0
    assert again["judged"]["training_seconds"] == on_task["judged"]["training_seconds"]


def test_hidden_words_are_judged_on_lines_that_were_not_learnt(text: Path, tmp_path: Path) -> None:
    """Every line of the text has a word of its own, so that a window's words tell its lines."""
    lines = text.read_text().splitlines()
    marked = tmp_path / "marked.txt"
    marked.write_text("\n".join(f"{number} " * 4 + line[:20] for number, line in enumerate(lines, 1000)))
    shots = do.OneShotOptions(teacher="none", validation_rows=16)
    objective = load_objective(SPACE, shots, do.DesignScoringOptions(text=marked, length=16))
    assert isinstance(objective, HiddenWordsObjective)
    windows = objective.windows
    words = np.where(windows.labels == NO_TARGET, windows.input_ids, windows.labels)
    learnt, judged = ({tuple(row[:8]) for row in part} for part in (words[: objective.rows], words[-16:]))
    assert len(learnt) == 114 and 1 < len(judged) <= 6 and not learnt & judged
    assert len(windows.input_ids) == objective.rows + 16


def test_the_super_network_is_trained_as_the_preset_says(text: Path, tmp_path: Path, bert: Path) -> None:
    shots = do.OneShotOptions(task="glue/CoLA", data=glue_folder(tmp_path / "glue"), teacher=str(bert))
    first, second = load_stages(SPACE, shots, do.DesignScoringOptions(text=text, length=8))
    assert (first.recipe, second.recipe) == (PRESETS["spos"].pretraining, PRESETS["spos"].finetuning)
    assert first.steps == max(1, round(10 * first.objective.rows / 256)) and second.objective.rows == 43


def test_paths_come_nearer_to_the_teacher(text: Path, bert: Path) -> None:
    shots = do.OneShotOptions(teacher=str(bert), validation_rows=8)
    objective = load_text_stage(SPACE, shots, do.DesignScoringOptions(text=text, length=16))
    supernet = SPACE.supernet(generator=torch.Generator().manual_seed(0), vocabulary=objective.vocabulary)
    learner, optimizer = objective.learner(supernet), None
    mobile = {f"block.{place}": "mobile-132" for place in range(6)}
    base = mobile | {"block.2": "base-132", "block.5": "base-132"}
    scores = {}
    for name, config in {"mobile": mobile, "base": base}.items():
        with path(supernet, config):
            before = learner.score()
            optimizer = torch.optim.AdamW(learner.model.parameters(), lr=1e-3)
            for batch in list(objective.batches(0, 8))[:6]:
                optimizer.zero_grad()
                learner.update(batch, np.random.default_rng(0), 0.0)
                optimizer.step()
            scores[name] = before, learner.score()
    assert all(after > before for before, after in scores.values())
    untouched = supernet.encoder.layers[0].blocks["base-792"].ffn.up.weight.grad
    assert untouched is None and set(learner.model["projections"].mixed) == {"528", "132"}


def test_a_teacher_of_another_batch_size_has_a_folder_of_its_own(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the other's folder the training would be refused; above 32 rows all learn in steps of 32."""

    def begin(config: TrainConfig, folder: Path) -> None:
        begin_run(folder, run_options(config))
        raise Failed(folder.name)

    monkeypatch.setattr(one_shot_teaching, "run_training", begin)
    data, scoring, folders = glue_folder(tmp_path / "glue"), do.DesignScoringOptions(out=tmp_path / "out"), {}
    for size in (8, 16, 32, 64, None):
        shots = do.OneShotOptions(task="glue/CoLA", data=data, teacher=str(bert), steps=2, batch_size=size)
        with pytest.raises(Failed) as told:
            load_task_stage(shots, scoring).teacher()
        folders[size] = str(told.value)
    assert len(set(folders.values())) == 3 and folders[32] == folders[64] == folders[None]


def test_rows_are_the_same_without_a_teacher(bert: Path, tmp_path: Path) -> None:
    """90 % of the training rows are learnt."""
    options = {"task": "glue/CoLA", "data": glue_folder(tmp_path / "glue", rows=60)}
    alone = load_task_objective(do.OneShotOptions(teacher="none", **options), do.DesignScoringOptions())
    taught = load_task_stage(do.OneShotOptions(teacher=str(bert), **options), do.DesignScoringOptions())
    assert alone.rows == taught.rows == 54
    judged = [sum(len(batch.rows) for batch in objective.validation) for objective in (alone, taught)]
    assert judged == [6, 6]


def test_other_labels_are_another_objective(tmp_path: Path) -> None:
    shots = do.OneShotOptions(task="glue/CoLA", data=glue_folder(tmp_path / "glue") / "CoLA")
    once, again = (load_task_objective(shots, do.DesignScoringOptions()) for _ in range(2))
    turned = replace(once, train=replace(once.train, targets=1 - once.train.targets))
    assert once.identity == again.identity != turned.identity


@pytest.mark.slow
def test_one_shot_search_on_labelled_rows(options: dict[str, Any], tmp_path: Path) -> None:
    of_task = shot(options, "text", "length") | ALONE
    document = aw.design(**of_task, task="movie-reviews").as_json()
    assert document["judged"]["lesson"] == "movie-reviews" and 0 <= document["score"] <= 1
    with pytest.raises(BadInput, match="classes"):
        aw.design(**of_task, task="squad", data=squad_folder(tmp_path / "squad"))
