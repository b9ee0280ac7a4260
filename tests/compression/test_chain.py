"""`compress` along the chain: the teacher's answers, the candidates, and what a user is told."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from archwright.compression.finetuning import TeacherAnswers
from archwright.compression.methods import load_evaluator
from archwright.compression.methods.candidates import DISTILLED_SHARES, PRUNED
from archwright.compression.space import read_candidates
from archwright.networks.load import load_saved_network
from archwright.random_streams import SUPERNET_BATCHES
from archwright.search import config_of
from archwright.spaces.subnetwork import SUPERNET, ChainSpace
from archwright.subnet.spec import nonembedding_parameters
from tests.compression.runs import compressed, refusal, study_of, words_of

SOURCES = [f"distilled-{share}" for share in DISTILLED_SHARES] + [f"{name}-{share}" for name, share in PRUNED] + ["first-1-layers"]


@pytest.fixture(scope="module")
def chain_run(given: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    return compressed(tmp_path_factory.mktemp("chain") / "run", **given, trials=40)


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
    run = compressed(tmp_path / "run", **given, trials=30)
    before = {member["source"] for member in run.front}
    kept = {path.name for path in run.folder.networks.iterdir()}
    more = compressed(tmp_path / "run", **given, trials=34)
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
    ],
)
def test_contradictions_get_one_line(
    options: dict[str, str], message: str, given: dict[str, Any], tmp_path: Path, capfd: Any
) -> None:
    code, line = refusal(capfd, words_of("compress", **given, **options, out=tmp_path / "run"))
    assert code == 2 and message in line
    assert not (tmp_path / "run").exists()
