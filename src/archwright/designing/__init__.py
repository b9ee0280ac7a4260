"""The pipeline of `archwright design`: limits, evaluation of many designs, the searches, and the report."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from archwright.registry import Lazy, Registry

if TYPE_CHECKING:
    from archwright.configs import design as do
    from archwright.search import Config
    from archwright.search.loop import EvaluateBatch
    from archwright.spaces.architectures import ArchitectureSpace
    from archwright.store import ScoreStore


@dataclass(frozen=True)
class EvaluationRequest:
    """What designs are to be evaluated by."""

    space: "ArchitectureSpace"
    goal: "do.GoalOptions"
    scoring: "do.DesignScoringOptions"
    one_shot: "do.OneShotOptions"
    known: "ScoreStore"
    """Results of this run and of runs before it in the same folder."""


@dataclass
class EvaluationCost:
    """What the evaluation of designs took."""

    seconds: dict[str, float] = field(default_factory=dict)
    """Processor seconds by design, also of those that an earlier run evaluated."""
    evaluated: list[str] = field(default_factory=list)
    """Designs that this run evaluated, and not known before."""

    @property
    def core_seconds(self) -> float:
        return sum(self.seconds.values())


@dataclass(frozen=True)
class Evaluation:
    """Evaluators of one method."""

    objectives: tuple[str, ...]
    """Names of what is maximised."""
    evaluator: "Callable[[int], EvaluateBatch]"
    """For the repeat of this number."""
    cost: EvaluationCost
    details: dict[str, Any]
    """What a reader should know about how designs were evaluated."""
    layer_scores: "Callable[[Config, int], dict[str, dict[str, Any]]]"
    """What each layer of a design contributes to each objective, with the weights of the repeat of this number."""


METHODS: Registry[Callable[[EvaluationRequest], AbstractContextManager[Evaluation]]] = Registry(
    "method",
    {
        "proxy": Lazy("archwright.designing.proxy_evaluator:evaluate_by_proxy", "scores of untrained networks"),
        "spos": Lazy(
            "archwright.designing.one_shot:evaluate_by_accuracy",
            "single path one-shot: a super-network trained on random paths, then validation accuracy of its paths "
            "(Guo et al. 2020; W-PCA, Appendix E.2)",
        ),
    },
    group="archwright.design_methods",
)
"""What designs are evaluated by."""
