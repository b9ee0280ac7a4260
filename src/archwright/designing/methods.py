"""Who judges designs: proxies on untrained networks, or the validation accuracy of paths in a trained super-network."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from archwright.configs import design as do
from archwright.configs.validation import changed_flags, refuse_unused
from archwright.designing.evaluator import ProxyEvaluator, open_pool, setup_for
from archwright.designing.one_shot import one_shot
from archwright.search.batch_loop import Judge
from archwright.spaces.architectures import ArchitectureSpace
from archwright.store import Scores


@dataclass(frozen=True)
class EvaluationRequest:
    """What is asked for."""

    space: ArchitectureSpace
    aim: do.GoalOptions
    looking: do.DesignScoringOptions
    shot: do.OneShotOptions
    known: Scores


@dataclass(frozen=True)
class Evaluation:
    """Judges of one method."""

    names: tuple[str, ...]
    """Of what is maximised."""
    judge: Callable[[int], Judge]
    """For the repeat of this number."""
    spent: dict[str, float] = field(default_factory=dict)
    """Processor seconds by design."""
    done: list[str] = field(default_factory=list)
    """Designs that were judged in this run, and not known before."""
    told: dict[str, Any] = field(default_factory=dict)
    """What a reader should know about how it was judged."""


@contextmanager
def by_proxy(question: EvaluationRequest) -> Iterator[Evaluation]:
    refuse_unused(changed_flags(question.shot), "without --method spos")
    setup = setup_for(question.space, question.aim.proxy, question.looking)
    spent: dict[str, float] = {}
    done: list[str] = []
    told = {"batch": [setup.rows, setup.length], "loss": setup.loss, "initial": setup.initial}
    with open_pool(setup, question.looking) as seek:
        yield Evaluation(
            setup.proxies,
            lambda repeat: ProxyEvaluator(setup, question.known, seek, repeat, spent, done),
            spent,
            done,
            told,
        )


OF_PROXIES = {"--proxy", "--batch-rows", "--loss", "--initial", "--workers", "--ray"}
OF_TEXT = {"--text", "--length"}
"""What a super-network and its accuracy do not need, the second where it learns a task."""


@contextmanager
def by_accuracy(question: EvaluationRequest) -> Iterator[Evaluation]:
    if not question.aim.compare_proxies:
        named = changed_flags(question.aim) | changed_flags(question.looking)
        refuse_unused(named & OF_PROXIES, "on accuracies, by which --method spos judges")
        refuse_unused(named & OF_TEXT if question.shot.task else (), "beside --task")
    spent: dict[str, float] = {}
    done: list[str] = []
    shot = one_shot(question.space, question.shot, question.looking, question.known)
    yield Evaluation((shot.name,), lambda repeat: shot.judge(repeat, spent, done), spent, done, shot.told)


METHODS: dict[str, Callable[[EvaluationRequest], AbstractContextManager[Evaluation]]] = {
    "proxy": by_proxy,
    "spos": by_accuracy,
}
"""By the name of the method."""
