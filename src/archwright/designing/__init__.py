"""The pipeline of `archwright design`: limits, evaluation of many designs, the searches, and the report."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from archwright.registry import Lazy, Registry

if TYPE_CHECKING:
    from archwright.designing.evaluation import Evaluation, EvaluationRequest


class DesignMethod(Protocol):
    """What designs are evaluated by."""

    def __call__(self, request: "EvaluationRequest") -> "AbstractContextManager[Evaluation]": ...


METHODS: Registry[DesignMethod] = Registry(
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
