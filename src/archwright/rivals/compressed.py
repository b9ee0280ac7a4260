"""Rival: what `compress` makes of the checkpoint within the student's parameters and time."""

from dataclasses import fields, replace
from pathlib import Path

from archwright.compression.methods import load_evaluator
from archwright.compression.pipeline import run_compression
from archwright.compression.run import FinishedRun
from archwright.configs import compress as o
from archwright.configs import training as to
from archwright.errors import NothingFits
from archwright.rivals import NoRival, RivalRequest, RivalResult
from archwright.rivals.checkpoint import find_pretrained
from archwright.rivals.first_layers import plain_config
from archwright.training.pipeline import evaluate_only
from archwright.training.task_data import save_network


def compress_checkpoint(request: RivalRequest) -> RivalResult:
    """A whole run of `compress`; of its front the member that `select` takes, judged on the student's test rows."""
    try:
        run = run_compression(compress_config(request))
        pick = run.select(total_params=request.parameters)
    except NothingFits as reason:
        raise NoRival(str(reason).rstrip(".")) from reason
    network = request.folder / "network"
    if not network.exists():
        evaluator = load_evaluator(run.folder, training=False)
        save_network(evaluator.extract(pick.config), evaluator.context.task_data, network)
    name = Path(find_pretrained(request.checkpoint)).name
    config = replace(request.config, task=replace(request.config.task, head="auto"))  # it has learnt the task by now
    judged = evaluate_only(plain_config(config, network, to.ScheduleOptions()))
    return RivalResult(
        f"sub-network {pick.entry['trial']} of {name}{describe_embeddings(run)}",
        judged["parameters"],
        sum(run.folder.seconds.values()),
        judged["validation"]["after"],
    )


def compress_config(request: RivalRequest) -> o.CompressConfig:
    config = request.config
    return o.CompressConfig(
        model=o.ModelOptions(model=find_pretrained(request.checkpoint)),
        data=o.DataOptions(**{f.name: getattr(config.task, f.name) for f in fields(o.DataOptions)}),
        supernet=o.SupernetOptions(
            precision=config.schedule.precision, checkpoint_seconds=config.schedule.checkpoint_seconds
        ),
        search=o.SearchOptions(minutes=request.minutes),
        budget=o.BudgetOptions(total_params=request.parameters),
        output=o.OutputOptions(
            out=request.folder / "run",
            seed=config.output.seed,
            threads=config.output.threads,
            device=config.output.device,
            deterministic=config.output.deterministic,
        ),
    )


def describe_embeddings(run: FinishedRun) -> str:
    """What is left of its token table."""
    vocabulary, rank = run.result.get("vocabulary"), run.result.get("embedding_rank")
    words = f", {vocabulary['tokens']:,} tokens" if vocabulary else ""
    return words + (f" of rank {rank}" if rank else "")
