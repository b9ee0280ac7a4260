"""The best sub-network within limits that the run's own front was not made for.

Every trial of the study is considered. Its cost is counted, or predicted where it can only be measured: of those within
the limits the best three of every band, by the rows of the search, are scored again on the rows that re-scored the
front, and chosen among as the front was. The pick is then measured: one that is over a limit gives way to the next.
Test rows choose nothing; they say what the pick loses.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from optuna.trial import TrialState

from archwright.compression.budgets.limits import (
    BUDGETS,
    INT8_SIZE,
    LATENCY,
    MEMORY,
    Limits,
    memory_bytes,
    read_picked,
    write_picked,
)
from archwright.compression.evaluator import SubnetEvaluator
from archwright.compression.methods import load_evaluator
from archwright.compression.result import (
    ORIGINAL,
    measure_networks,
    read_outcomes,
    score_networks,
    time_members,
    write_outcomes,
)
from archwright.compression.selection import Finalist, best_of_bands, choose_members, distinct_networks
from archwright.compression.space import read_latency_table
from archwright.errors import BadInput
from archwright.networks.load import load_saved_network
from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.memory import measure_memory
from archwright.random_streams import PAIRED_ROWS
from archwright.search import smallest
from archwright.search.front import is_feasible
from archwright.statistics.paired import PairedErrors
from archwright.store import RunFolder, report_database_loss
from archwright.subnet.spec import SubnetSpec

SLACK = 1.05
"""A predicted cost may be this far above its limit: whether the network keeps it is measured."""
ORIGINAL_MEMORY = "original_memory"
FLOAT_BYTES = 4


@dataclass(frozen=True)
class Pick:
    """A chosen network as an entry of a result, and how it was chosen."""

    entry: dict[str, Any]
    note: str


def select_within(run: RunFolder, result: Mapping[str, Any], limits: Limits) -> Pick:
    """The best network of the run within these limits; BadInput, with the smallest costs there are, when there is none.

    What is measured for it is noted in the run folder.
    """
    choice = BudgetChoice(load_evaluator(run, training=False), result, limits)
    with report_database_loss():
        finalists = choice.finalists()
    errors = choice.rescore(finalists)
    left = [finalist for finalist in finalists if choice.loses_little(errors, finalist)]
    refused: list[dict[str, Any]] = []
    while left:
        pick = choice.choose(left, errors)
        entry = choice.measure(pick)
        if limits.allow(entry):
            entry = choice.complete(pick, errors, entry)
            write_picked(run, entry)
            return Pick(entry, choice.words(len(finalists), refused=len(refused)))
        left.remove(pick)
        refused.append(entry)
    raise BadInput(choice.explain(refused, some_fit=bool(finalists)))


def measure_original_memory(run: RunFolder) -> float:
    """Bytes, as --memory counts them; measured once per run."""
    return float(memory_bytes({MEMORY: read_original_memory(load_evaluator(run, training=False))}) or 0.0)


def read_original_memory(evaluator: SubnetEvaluator) -> dict[str, Any]:
    """The `Memory` of the original, measured once per run."""
    run = evaluator.context.run
    noted = run.note(ORIGINAL_MEMORY)
    if noted is None:
        measured = measure_memory(load_saved_network(run.original), length=evaluator.context.length)
        noted = run.note(ORIGINAL_MEMORY, measured._asdict())
    return dict(noted)


@dataclass(frozen=True)
class BudgetChoice:
    """One choice within limits: who is considered, what they cost, who is taken."""

    evaluator: SubnetEvaluator
    result: Mapping[str, Any]
    limits: Limits

    @cached_property
    def original(self) -> PrunedNetwork:
        context = self.evaluator.context
        return load_saved_network(context.run.original).to(context.task_data.device)

    @cached_property
    def known(self) -> dict[int, dict[str, Any]]:
        """What was measured before: the front, and earlier picks."""
        entries = [*self.result["front"], *read_picked(self.evaluator.context.run)]
        return {entry["trial"]: dict(entry) for entry in entries}

    @cached_property
    def predictors(self) -> dict[str, Callable[[SubnetSpec], float]]:
        """Limited costs of any sub-network, without building it."""
        return {name: self.predictor(name) for name in self.limits.most}

    def predictor(self, name: str) -> Callable[[SubnetSpec], float]:
        evaluator = self.evaluator
        if name == LATENCY:
            return read_latency_table(evaluator.context, evaluator.network).predict
        if name == MEMORY:
            original = read_original_memory(evaluator)
            beside = max(0, original["peak"] - original["disk"])  # activations and what loading needs
            return lambda spec: FLOAT_BYTES * evaluator.cost("parameters", spec) + beside
        counted = "int8_bytes" if name == INT8_SIZE else name
        return lambda spec: evaluator.cost(counted, spec)

    @cached_property
    def tried(self) -> list[Finalist]:
        """Every network that the search evaluated and whose weights are still there."""
        evaluator = self.evaluator
        trials = evaluator.open_study().get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        usable = distinct_networks(
            evaluator, [trial for trial in trials if is_feasible(trial)], lambda trial, spec: self.used(spec)
        )
        return [network for network in usable if evaluator.weights.is_kept(network.config)]

    def used(self, spec: SubnetSpec) -> float:
        """How much of its limits a sub-network uses: 0 as little as the smallest, 1 all of the one nearest to it."""
        space = self.evaluator.space
        least = space.build(smallest(space.choices))
        shares = []
        for name, predict in self.predictors.items():
            low, most = predict(least), self.limits.most[name]
            shares.append((predict(spec) - low) / (most - low) if most > low else 1.0)
        return max(shares)

    def may_fit(self, network: Finalist) -> bool:
        """By what is known of it, or by its counted or predicted costs."""
        entry = self.known.get(network.trial.number, {})
        for name, most in self.limits.most.items():
            measured, budget = BUDGETS[name].value(entry), BUDGETS[name]
            room = most if budget.counted or measured is not None else SLACK * most
            if (self.predictors[name](network.spec) if measured is None else measured) > room:
                return False
        return True

    @cached_property
    def fitting(self) -> list[Finalist]:
        return [network for network in self.tried if self.may_fit(network)]

    def finalists(self) -> list[Finalist]:
        """The best three of every band; without halves those that no smaller one is as good as."""
        if self.evaluator.context.halves is not None:
            return best_of_bands(self.fitting)
        front: list[Finalist] = []
        for network in self.fitting:
            if not front or network.trial.values[0] < front[-1].trial.values[0]:
                front.append(network)
        return front

    def rescore(self, finalists: Sequence[Finalist]) -> PairedErrors:
        """Errors on the rows that re-scored the front; what was scored before is not scored again."""
        context = self.evaluator.context
        known = read_outcomes(context.run)
        new = [finalist for finalist in finalists if finalist.name not in known]
        rows = context.holdout_rows, context.original_holdout_rows
        if new or ORIGINAL not in known:
            scored = score_networks(self.evaluator, self.original, new, *rows, title="re-score")
            known |= scored.outcomes
            write_outcomes(context.run, PairedErrors(known))
        return PairedErrors(known, seed=(context.seed, PAIRED_ROWS))

    def loses_little(self, errors: PairedErrors, network: Finalist) -> bool:
        loss, most = errors.loss(network.name, ORIGINAL), self.limits.max_loss
        return most is None or (loss.high if self.limits.surely else loss.value) <= most

    def choose(self, networks: Sequence[Finalist], errors: PairedErrors) -> Finalist:
        """The largest that no smaller one beats by two standard errors; without halves the lowest error."""
        if self.evaluator.context.halves is not None:
            return choose_members(networks, errors)[-1]
        return min(networks, key=lambda network: (errors.error(network.name), network.size))

    def measure(self, network: Finalist) -> dict[str, Any]:
        """What is known of it, its counted costs, and what the limits need to be measured."""
        entry = {**self.known.get(network.trial.number, {})}
        for name in self.limits.most:
            if BUDGETS[name].value(entry) is None:
                entry[name] = self.measure_cost(name, network)
        return entry

    def measure_cost(self, name: str, network: Finalist) -> Any:
        evaluator = self.evaluator
        if BUDGETS[name].counted:
            return evaluator.cost(name, network.spec)
        if name == LATENCY:
            timings = time_members(evaluator, self.original, [network])
            return self.scale_latency(timings[network.name]._asdict(), timings[ORIGINAL].median)
        if name == MEMORY:
            return measure_memory(evaluator.extract(network.config), length=evaluator.context.length)._asdict()
        from archwright.exporting.onnx_file import int8_file_bytes  # onnx takes a second to import

        return int8_file_bytes(evaluator.extract(network.config))

    def scale_latency(self, timing: Mapping[str, float], original: float) -> dict[str, float]:
        """Milliseconds as if the original had taken as long as when the front was timed, not `original`."""
        scale = self.result["original"][LATENCY]["median"] / original
        return {name: scale * value for name, value in timing.items()}

    def complete(self, network: Finalist, errors: PairedErrors, entry: Mapping[str, Any]) -> dict[str, Any]:
        """The entry of the pick with everything that a member of the front has: test rows, latency, costs."""
        if network.trial.number in self.known:
            return {**self.known[network.trial.number], **entry}
        measured = measure_networks(self.evaluator, self.original, [network], errors)
        (whole,) = measured["front"]
        latency = self.scale_latency(whole[LATENCY], measured[ORIGINAL][LATENCY]["median"])
        return {**whole, LATENCY: latency, "latency_rank": None, **entry}

    def words(self, rescored: int, *, refused: int = 0) -> str:
        """Who was considered, and how many would have been taken but cost more when measured, in one line."""
        context = self.evaluator.context
        rows = sum(len(batch.rows) for batch in context.holdout_rows)
        judged = (
            f"the best {rescored} by the search were re-scored on {rows:,} validation rows that did not search"
            if context.halves is not None
            else f"{rescored} are on their front by all {rows:,} validation rows"
        )
        fitting = f"{len(self.fitting)} of {len(self.tried)} networks are within {self.limits.words}"
        larger = f"; measured, {refused} better {'one takes' if refused == 1 else 'ones take'} more" if refused else ""
        return f"considered: {fitting}; {judged}{larger}"

    def explain(self, refused: Sequence[Mapping[str, Any]], *, some_fit: bool) -> str:
        """Why there is none, and the smallest costs there are: measured ones of `refused`, else as they are predicted.

        `some_fit`: whether any was within the costs before it was measured.
        """
        least = []
        for name, predict in self.predictors.items():
            measured = [value for entry in refused if (value := BUDGETS[name].value(entry)) is not None]
            least.append(BUDGETS[name].words(min(measured or map(predict, [network.spec for network in self.tried]))))
        lost = " and loses that little" if some_fit and not refused else ""
        return (
            f"no sub-network that was tried is within {self.limits.words}{lost}; the least any of them takes is "
            f"{', '.join(least)}. Loosen the budget, or search longer."
        )
