"""`compress` along the chain: the teacher's answers, the candidates, and what a user is told."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from archwright.compression.finetuning import TeacherAnswers
from archwright.compression.methods import distillation, load_evaluator
from archwright.compression.methods.candidates import (
    DISTILLED_SHARES,
    PRUNED,
    parameter_budget,
    plan_candidates,
)
from archwright.compression.methods.distillation import deal_time, train_alone
from archwright.compression.recovery import mean_loss
from archwright.compression.space import read_candidates
from archwright.networks.load import load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.random_streams import SUPERNET_BATCHES
from archwright.search import config_of
from archwright.spaces.subnetwork import DISTILLED, SUPERNET, ChainSpace
from archwright.store import RunFolder
from archwright.subnet.spec import nonembedding_parameters
from tests.compression.runs import compressed, refusal, study_of, words_of

SOURCES = [
    *(f"{DISTILLED}-{share}" for share in DISTILLED_SHARES),
    *(f"{name}-{share}" for name, share in PRUNED if name != "original" or share not in DISTILLED_SHARES),
    "first-1-layers",
]


@pytest.fixture(scope="module")
def chain_run(given: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    return compressed(tmp_path_factory.mktemp("chain") / "run", **given, trials=40, distil_epochs=None)


def test_the_teacher_answers_once_for_all_rows(chain_run: Any) -> None:
    context = load_evaluator(chain_run.folder).context
    answers, teacher = TeacherAnswers(context), load_saved_network(context.run.original).eval()
    assert answers.cached
    for batch in context.task_data.training(16, stream=SUPERNET_BATCHES)(0):
        with torch.no_grad():
            torch.testing.assert_close(answers(batch), teacher(**batch.inputs).logits, atol=1e-5, rtol=1e-5)


def test_candidates_are_trials_of_the_same_study(chain_run: Any) -> None:
    evaluator = load_evaluator(chain_run.folder)
    space = evaluator.space
    assert isinstance(space, ChainSpace)
    assert list(read_candidates(evaluator.context)) == SOURCES
    trials = study_of(chain_run.folder.path).get_trials(deepcopy=False)
    sources = [config_of(space.choices, trial)["source"] for trial in trials]
    assert set(sources) == {SUPERNET, *SOURCES}
    assert sources.count(SUPERNET) == 40 - len(SOURCES)


def test_more_trials_find_the_candidates_that_may_be_needed(given: dict[str, Any], tmp_path: Path) -> None:
    """The front is chosen again, also among candidates that were not on it before."""
    run = compressed(tmp_path / "run", **given, trials=30, distil_epochs=1.0)
    before = {member["source"] for member in run.front}
    kept = {path.name for path in run.folder.networks.iterdir()}
    more = compressed(tmp_path / "run", **given, trials=34, distil_epochs=1.0)
    assert before - {SUPERNET} <= kept < set(SOURCES)
    assert len(more.result["trials"]) == 34


def test_members_name_their_source_and_their_networks_stay(chain_run: Any) -> None:
    sources = {member["source"] for member in chain_run.front}
    assert all(member["source"] == member["config"]["source"] for member in chain_run.front)
    kept = {path.name for path in chain_run.folder.networks.iterdir()} if chain_run.folder.networks.exists() else set()
    assert sources - {SUPERNET} <= kept


def test_every_member_is_exported_with_its_own_weights(chain_run: Any, tmp_path: Path) -> None:
    for member in chain_run.front:
        folder = tmp_path / str(member["trial"])
        report = chain_run.member(member["trial"]).save_pretrained(folder)
        small = AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True)
        assert sum(p.numel() for p in small.parameters()) == member["parameters"] == report["parameters"]


def test_distilled_networks_were_repaired_cuts_of_the_original(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same shape as the cut they began with, which is no candidate any more, and better on the training rows."""
    trained: dict[str, tuple[PrunedNetwork, PrunedNetwork]] = {}

    def recording(context: Any, network: PrunedNetwork, source: str, steps: int) -> None:
        before = copy.deepcopy(network)
        train_alone(context, network, source, steps)
        trained[source] = before, network

    monkeypatch.setattr(distillation, "train_alone", recording)
    run = compressed(tmp_path / "run", **given, distil_epochs=8.0, learning_rate=3e-3, trials=7)
    context = load_evaluator(run.folder).context
    specs, batches = read_candidates(context), list(context.task_data.training(16, stream=SUPERNET_BATCHES)(0))
    for share in (50, 30):
        assert f"{DISTILLED}-{share}" in specs and f"original-{share}" not in specs
        assert not (run.folder.networks / f"original-{share}").exists()
        cut, alone = trained[f"{DISTILLED}-{share}"]
        assert cut.config.layers == alone.config.layers
        worse, better = (mean_loss(network, batches, context.task_data.loss) for network in (cut, alone))
        assert better < worse - 0.002


def test_no_epochs_distil_nothing(given: dict[str, Any], tmp_path: Path) -> None:
    run = compressed(tmp_path / "run", **given, distil_epochs=0.0, trials=3)
    assert not any(source.startswith(DISTILLED) for source in read_candidates(load_evaluator(run.folder).context))


def test_a_budget_is_distilled_first_and_nothing_larger(given: dict[str, Any], tmp_path: Path) -> None:
    run = compressed(tmp_path / "run", **given, params="46%", distil_epochs=0.01, trials=3)
    evaluator = load_evaluator(run.folder)
    assert isinstance(evaluator.space, ChainSpace)
    shares = plan_candidates(evaluator.context, evaluator.space).distilled
    assert shares[1:] == [30, 20, 10, 40]
    assert all(f"{DISTILLED}-{share}" in read_candidates(evaluator.context) for share in shares)  # of one step each
    assert 40 < shares[0] <= 46
    fit = parameter_budget(evaluator.context, evaluator.space)
    assert fit(evaluator.space.chain.spec(shares[0] / 100))
    assert not fit(evaluator.space.chain.spec((shares[0] + 1) / 100))


@pytest.mark.parametrize(
    ("seconds", "epochs"),
    [
        (1000.0, {50: 3.0, 30: 3.0, 20: 3.0}),  # enough for all
        (200.0, {50: 1.4, 30: 7 / 3, 20: 3.0}),  # 70 s for each; the smallest takes 60 for its three epochs
        (120.0, {50: 1.2, 30: 2.0, 20: 0.0}),  # 40 s are too little for the largest: the least useful has none
        (10.0, {50: 0.0, 30: 0.0, 20: 0.0}),
    ],
)
def test_time_is_dealt_to_what_is_distilled(
    seconds: float, epochs: dict[int, float], chain_run: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """An epoch of a network of 50 % takes 50 s, and so on; what has no time is not trained, and a line says so."""
    assert deal_time(dict.fromkeys(epochs, 3.0), seconds, {share: float(share) for share in epochs}) == pytest.approx(
        epochs
    )
    context = load_evaluator(chain_run.folder).context
    per_epoch = context.task_data.steps_per_epoch(context.config.supernet.batch_size)
    monkeypatch.setattr(distillation, "load_repaired", lambda *_: None)
    monkeypatch.setattr(distillation, "plain_update", lambda *_, **__: None)
    monkeypatch.setattr(distillation, "seconds_per_step", lambda *_: 50.0 / per_epoch)
    monkeypatch.setattr(distillation, "monotonic", lambda: 0.0)
    monkeypatch.setattr(RunFolder, "note", lambda *_: None)  # neither an earlier plan, nor a new one
    steps = distillation.plan_distillation(context, list(epochs), seconds)
    assert steps == {share: round(part * per_epoch) for share, part in epochs.items() if part}
    assert ("no time to train networks of" in caplog.text) == (0.0 in epochs.values())


@pytest.mark.parametrize("epochs", [0.1, 0.3, 0.6, 0.7, 1.0, 3.0])
def test_ample_time_leaves_nothing_out(epochs: float) -> None:
    """Whatever a quotient is rounded to."""
    for steps in range(20, 400):
        per_epoch = {share: steps * 0.37 * share / 50 for share in DISTILLED_SHARES}
        assert set(deal_time(dict.fromkeys(DISTILLED_SHARES, epochs), 1e9, per_epoch).values()) == {epochs}


def test_shares_are_those_of_the_first_cost(given: dict[str, Any], tmp_path: Path) -> None:
    """With latency the chain is cut by the table of measured blocks."""
    run = compressed(tmp_path / "run", **given, objectives=("latency_ms",), trials=14)
    evaluator = load_evaluator(run.folder)
    space, table = evaluator.space, evaluator.latency_table()
    assert isinstance(space, ChainSpace) and table is not None
    whole = table.predict(space.anatomy.full)
    for percent in (40, 60, 80):
        spec = space.chain.spec(percent / 100)
        assert table.predict(spec) <= percent / 100 * whole + 1e-9 or not any(map(any, spec))
    assert nonembedding_parameters(space.anatomy, space.chain.spec(1.0)) == nonembedding_parameters(
        space.anatomy, space.anatomy.full
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"teacher": "in-place"}, "--strategy teacher needs a teacher that stays as it is"),
        ({"order": "none"}, "--space chain is made of importance scores"),
        ({"method": "standard", "teacher": "in-place"}, "--teacher means nothing for --method standard"),
        ({"method": "standard", "distil_epochs": 1.0}, "--distil-epochs means nothing for --method standard"),
        (
            {"space": "small", "distil_epochs": 1.0},
            "--distil-epochs trains members of --space chain, got --space small",
        ),
    ],
)
def test_contradictions_get_one_line(
    options: dict[str, str], message: str, given: dict[str, Any], tmp_path: Path, capfd: Any
) -> None:
    code, line = refusal(capfd, words_of("compress", **given, **options, out=tmp_path / "run"))
    assert code == 2 and message in line
    assert not (tmp_path / "run").exists()
