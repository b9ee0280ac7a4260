"""`--total-params`: embeddings that leave room for the layers, and sizes against the untouched checkpoint."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from archwright.compression.budgets.targets import TARGETS
from archwright.compression.checkpoint_size import checkpoint_anatomy
from archwright.compression.methods import METHODS
from archwright.configs import compress as o
from archwright.configs.budget import parse_budget
from archwright.configs.compress import CompressConfig
from archwright.errors import BadInput
from archwright.logs import logger
from archwright.store import RunFolder, is_run
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.spec import nonembedding_parameters, parameters
from archwright.tasks import TASK_KINDS
from archwright.training.task_data import TaskData, describe_checkpoint, prune_vocabulary

ENOUGH = 0.28
"""Share of the layers' parameters that everything else must leave room for; below it layers lose more than it does."""
PLANNED = ("vocabulary", "embedding_rank", "width")
"""Options that a plan fills in."""


class Plan(NamedTuple):
    """What is made smaller beside the layers."""

    tokens: float | str
    """Share of the tokens, or the task's."""
    width: float
    """Share of the hidden width; 1 where the family or the method has no smaller one."""
    rank: float
    """Share of the checkpoint's hidden width that a row of the table has."""


PLANS = (
    *(Plan(2 / 3, 1, 1), Plan(2 / 3, 1, 1 / 2), Plan(2 / 3, 1, 1 / 3), Plan(2 / 3, 1, 1 / 4), Plan(1 / 2, 1, 1 / 4)),
    *(Plan(1 / 3, 1, 1 / 4), Plan("task", 1, 1 / 4), Plan("task", 1, 1 / 6), Plan(1 / 6, 5 / 6, 1 / 6)),
    *(Plan(1 / 8, 3 / 4, 1 / 6), Plan(1 / 12, 2 / 3, 1 / 6)),
)
"""Ever smaller ones, measured on MiniLM fine-tuned on 4,000 rows of SST-2 as KL divergence from its answers.

Untrained: 20,000 tokens 0.02; rank 128 0.05, 96 0.075, 64 0.13; the 8,171 tokens of the task 0.085; width 352 0.008,
320 0.018, 288 0.031, 256 0.048. Of 6M parameters with 20,000 tokens, trained once each: rank 128 with 29 % of the
layers 0.117, 96 with 35 % 0.126, 64 with 42 % 0.155. Rank 96 with width 224 and 62 % of the layers lost 2.3 points
where width 384 and 35 % lost 1.6 (one run each), though untrained it was closer (0.096 against 0.163): width is last.
"""


def fit_embeddings(
    config: CompressConfig, task_data: TaskData, folder: Path, methods: Sequence[str] = ()
) -> tuple[CompressConfig, TaskData]:
    """The config with a vocabulary, a width and an embedding rank that --total-params allows, and the data for it.

    What the user said stays, and it suits all of these methods (none: the config's). The first plan that leaves enough
    room is taken, else the smallest one; a run that has begun in `folder` keeps the one it began with.
    """
    budget = config.budget.total_params
    if isinstance(budget, bool):
        return config, task_data
    if is_run(folder):
        return go_on_with_plan(config, task_data, RunFolder(folder).settings)
    whole = checkpoint_anatomy(task_data, config.model)
    most = parse_budget(budget, parameters(whole, whole.full), option="--total-params")
    can_narrow = all(can_be_narrow(config, task_data, name) for name in methods or (config.supernet.method,))
    rooms: list[tuple[float, o.ModelOptions, TaskData]] = []
    for model, data in embedding_plans(config, task_data, can_narrow):
        anatomy = read_anatomy(describe_checkpoint(data, model))
        layers = nonembedding_parameters(anatomy, anatomy.full)
        rooms.append(((most - anatomy.embeddings) / layers, model, data))
        if rooms[-1][0] >= ENOUGH:
            break
    room, model, data = max(rooms, key=lambda plan: min(plan[0], ENOUGH))  # of equal ones the first
    if model != config.model and room > 0:  # otherwise the budget is refused, with the smallest there is
        rank = "" if model.embedding_rank is None else f", --embedding-rank {model.embedding_rank}"
        rank += "" if model.width is None else f", --width {model.width}"
        logger.warning(
            "--total-params %s: --vocabulary %s (%s of %s tokens)%s leave room for %.0f %% of the layers",
            *(budget, model.vocabulary or "as it is", f"{data.task.vocabulary:,}", f"{task_data.task.vocabulary:,}"),
            *(rank, 100 * room),
        )
    return replace(config, model=model), data


def go_on_with_plan(
    config: CompressConfig, task_data: TaskData, settings: Mapping[str, Any]
) -> tuple[CompressConfig, TaskData]:
    """The config with what the plan of a run says, as another version may have made it."""
    own = {name: getattr(config.model, name) for name in PLANNED}
    values: dict[str, Any] = {name: settings.get(name) if own[name] is None else own[name] for name in PLANNED}
    model = replace(config.model, **values)
    if model.vocabulary is not None and own["vocabulary"] is None:
        task_data = prune_vocabulary(task_data, model.vocabulary, config.data.max_length)
    return replace(config, model=model), task_data


def embedding_plans(
    config: CompressConfig, task_data: TaskData, can_narrow: bool
) -> Iterator[tuple[o.ModelOptions, TaskData]]:
    """Ever smaller embeddings and widths, those of the user first; what the user said stays.

    Language models have no narrow tables, and only encoders that start from the fine-tuned original a smaller width.
    """
    model, width = config.model, word_width(task_data, config.model)
    whole = describe_checkpoint(task_data, config.model, whole=True)
    pruned: dict[str | float | None, TaskData] = {model.vocabulary: task_data}
    yield model, task_data
    for tokens, stream, part in PLANS:
        rule = model.vocabulary
        if rule is None:
            rule = tokens if isinstance(tokens, str) else str(round(tokens * task_data.task.vocabulary))
        try:
            if rule not in pruned:
                pruned[rule] = prune_vocabulary(task_data, rule, config.data.max_length)
        except BadInput:  # another kind of tokenizer, or fewer than special tokens and single characters
            rule = model.vocabulary
        channels, rank = model.width, model.embedding_rank
        if stream < 1 and channels is None and can_narrow:
            channels = str(round(stream * whole.stream_width))
        narrow = task_data.task.kind != "lm" and not TARGETS[config.search.for_].stock
        if part < 1 and rank is None and narrow:
            rank = round(part * width)
        if (
            rank is not None
            and channels is not None
            and rank >= parse_budget(channels, whole.stream_width, option="--width")
        ):  # what the user said is as narrow already
            channels, rank = model.width, model.embedding_rank
        yield replace(model, vocabulary=rule, embedding_rank=rank, width=channels), pruned[rule]


def can_be_narrow(config: CompressConfig, task_data: TaskData, name: str) -> bool:
    """Whether --width may be planned: for encoders of transformers, and networks that start from the original."""
    family, options = describe_checkpoint(task_data, config.model, whole=True).family, config.supernet
    method = METHODS[name]
    starts = not method.standalone and not (method.shared and options.start == "pretrained")
    starts = starts and TASK_KINDS[task_data.task.kind].teach is None  # its answers are as wide as the stream
    if TARGETS[config.search.for_].stock:  # whose classes have the whole width
        return False
    return starts and not config.fidelity.honesty and config.model.cut == "after" and family.can_narrow


def word_width(task_data: TaskData, model: o.ModelOptions) -> int:
    """Numbers per row of the checkpoint's table of word vectors."""
    config = describe_checkpoint(task_data, model, whole=True)
    return int(config.backbone.get("embedding_size") or config.backbone[config.family.width])
