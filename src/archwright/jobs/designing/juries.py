"""Who judges designs: proxies on untrained networks, or the validation accuracy of paths in a trained super-network."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from archwright.jobs import design_options as do
from archwright.jobs.designing.judging import Court, glass_for, watching
from archwright.jobs.designing.spos import one_shot
from archwright.jobs.idle import given, refuse
from archwright.search.together import Judge
from archwright.spaces.architectures import ArchitectureSpace
from archwright.store import Scores


@dataclass(frozen=True)
class Question:
    """What is asked for."""

    space: ArchitectureSpace
    aim: do.Aim
    looking: do.Looking
    shot: do.OneShot
    known: Scores


@dataclass(frozen=True)
class Jury:
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
def by_proxy(question: Question) -> Iterator[Jury]:
    refuse(given(question.shot), "without --method spos")
    glass = glass_for(question.space, question.aim.proxy, question.looking)
    spent: dict[str, float] = {}
    done: list[str] = []
    told = {"batch": [glass.rows, glass.length], "loss": glass.loss, "initial": glass.initial}
    with watching(glass, question.looking) as seek:
        yield Jury(
            glass.proxies, lambda repeat: Court(glass, question.known, seek, repeat, spent, done), spent, done, told
        )


OF_PROXIES = {"--proxy", "--batch-rows", "--loss", "--initial", "--workers", "--ray"}
OF_TEXT = {"--text", "--length"}
"""What a super-network and its accuracy do not need, the second where it learns a task."""


@contextmanager
def by_accuracy(question: Question) -> Iterator[Jury]:
    if not question.aim.compare_proxies:
        named = given(question.aim) | given(question.looking)
        refuse(named & OF_PROXIES, "on accuracies, by which --method spos judges")
        refuse(named & OF_TEXT if question.shot.task else (), "beside --task")
    spent: dict[str, float] = {}
    done: list[str] = []
    shot = one_shot(question.space, question.shot, question.looking, question.known)
    yield Jury((shot.name,), lambda repeat: shot.judge(repeat, spent, done), spent, done, shot.told)


JURIES: dict[str, Callable[[Question], AbstractContextManager[Jury]]] = {"proxy": by_proxy, "spos": by_accuracy}
"""By the name of the method."""
