"""How --minutes is divided among the phases of a run, and how many test rows a run without --minutes asks about.

Re-scoring and measuring are part of the minutes.

What training may take depends on the kind of task: see TimeShares (`tasks/kind.py`).
"""

from time import monotonic, perf_counter

import torch

from archwright.compression.context import RunContext
from archwright.data.batching import Batch
from archwright.data.encoding import Encoded
from archwright.devices import synchronize
from archwright.logs import logger
from archwright.networks.pruned import PrunedNetwork
from archwright.tasks import TASK_KINDS
from archwright.training.precision import mixed_precision

SEARCH = 0.05
"""Part of --minutes that belongs to the search even when everything before it took longer than planned."""
TESTING = 0.07
"""Part that the test rows may take, of original, super-network and front."""
LATENCY = 0.03
"""Part of the run's time so far that timing the front may take, unless its intervals are narrow earlier."""
FEWEST_TESTED = 500
"""Test rows that --minutes never cuts."""
USUALLY_TESTED, TESTED_SHARE = 1000, 0.25
"""Without --minutes: so many test rows, or a quarter of the training rows, keep measuring below a tenth of a run."""
TIMED_TOKENS, TIMED_SECONDS = 4096, 3.0
"""So many tokens, or for so long, tell how fast a network answers."""
USUAL_SHARE = 0.55
"""Of the time of the whole network: what a member of the front takes on average."""
BACKWARD = 3
"""Learning from a text takes so many times as long as answering it."""


def search_deadline(
    context: RunContext, original: PrunedNetwork, *, start: float, rescored: int, trains: bool = False
) -> float | None:
    """When the search must end so that the run ends in time; a value of `time.monotonic()`, like the run's start.

    After it at most so many networks are re-scored, and the front is tested and timed. A search that tries fewer leaves
    fewer to re-score: it has its share of the time that trying and re-scoring a network take together. `trains`: trying
    one is to train it by itself.
    """
    minutes = context.config.search.minutes
    if minutes is None:
        return None
    whole = count_tokens(context.holdout_rows) * seconds_per_token(original, context.holdout_rows)
    with mixed_precision(context.task_data.device, context.config.supernet.precision):
        per_token = seconds_per_token(original, context.search_rows)
    epochs = BACKWARD * context.config.supernet.epochs if trains else 0.0
    tried = per_token * (count_tokens(context.search_rows) + epochs * len(context.task_data.encoded["train"].ids))
    now = monotonic()
    left = start + 60 * minutes * (1 - TESTING - LATENCY) - whole - now
    searching = max(left - USUAL_SHARE * rescored * whole, left * tried / (tried + whole))
    return now + max(searching, 60 * minutes * SEARCH)


def candidates_deadline(context: RunContext) -> float | None:
    """When candidates must be ready, as a value of `time.monotonic()`; an interrupted attempt's time is part of theirs.

    None without --minutes.
    """
    minutes = context.config.search.minutes
    if minutes is None:
        return None
    share = TASK_KINDS[context.task_data.task.kind].shares.candidates
    before = context.group.agree(context.run.seconds.get("candidates", 0.0))
    return monotonic() + 60 * share * minutes - before


def tested_rows(context: RunContext, original: PrunedNetwork, *, members: int) -> tuple[Encoded, Encoded]:
    """The test rows, or as many of them, at random, as the run has time for; the same after an interruption.

    Once as sub-networks read them and once as the original does, where it has other tokens. A number of rows that the
    user gave is cut by --minutes only.
    """
    encoded, minutes = context.task_data.encoded["test"], context.config.search.minutes
    all_rows = encoded, context.original_data.encoded["test"]
    if encoded.windows is not None:
        return all_rows
    if minutes is None:
        rows = usual_test_rows(context, len(encoded))
        if "train" in context.task_data.encoded:
            context.run.note("tested", {"rows": rows})
        words = f"{rows:,} of {len(encoded):,} test rows are tested, to save time; --test-rows {len(encoded)} tests all"
    else:
        rows = affordable_test_rows(context, original, minutes=minutes, members=members)
        words = f"--minutes {minutes:g} leaves time to test {rows:,} of {len(encoded):,} test rows"
    if rows >= len(encoded):
        return all_rows
    logger.warning(words)
    return context.task_data.sample_test_rows(rows), context.original_data.sample_test_rows(rows)


def usual_test_rows(context: RunContext, rows: int) -> int:
    """Counted, not timed, so that the same command tests the same rows on every machine.

    Noted, because a finished run has no training rows any more to count by.
    """
    if context.config.data.test_rows:
        return rows
    noted, encoded = context.run.note("tested"), context.task_data.encoded
    if noted is not None:
        return int(noted["rows"])
    return min(rows, max(USUALLY_TESTED, int(TESTED_SHARE * encoded["train"].rows))) if "train" in encoded else rows


def affordable_test_rows(context: RunContext, original: PrunedNetwork, *, minutes: float, members: int) -> int:
    """Measured once per run: what a row costs, and how many of them the minutes leave room for."""
    encoded = context.task_data.encoded["test"]
    if len(encoded) <= FEWEST_TESTED:
        return len(encoded)
    if context.run.note("tested") is None:
        per_row = seconds_per_token(original, context.task_data.test) * encoded.lengths.mean() * encoded.choices
        affordable = 60 * minutes * TESTING / (per_row * (2 + USUAL_SHARE * members))
        context.run.note("tested", {"rows": max(FEWEST_TESTED, min(len(encoded), int(affordable)))})
    return int(context.run.note("tested")["rows"])


@torch.no_grad()
def seconds_per_token(network: PrunedNetwork, rows: list[Batch]) -> float:
    """Of answering, measured on a few batches after one that warms up; padding does not count."""
    network.eval()
    network(**rows[0].to(network.device).inputs)
    synchronize(network.device)
    start, tokens = perf_counter(), 0
    for batch in rows:
        network(**batch.to(network.device).inputs)
        tokens += count_tokens([batch])
        if tokens >= TIMED_TOKENS or perf_counter() - start > TIMED_SECONDS:
            break
    synchronize(network.device)
    return (perf_counter() - start) / tokens


def count_tokens(rows: list[Batch]) -> int:
    return sum(int(batch.inputs["attention_mask"].sum()) for batch in rows)
