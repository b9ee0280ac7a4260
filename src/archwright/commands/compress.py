"""`archwright compress`: from a checkpoint and a task to a Pareto front of smaller models."""

from archwright.compression.pipeline import assist_compression, run_compression
from archwright.compression.run import FinishedRun
from archwright.compression.studies.comparison import MethodComparison, compare_methods
from archwright.compression.studies.estimate import RunEstimate, estimate_run
from archwright.compression.studies.preview import Preview, preview_spaces
from archwright.configs.compress import CompressConfig
from archwright.errors import BadInput
from archwright.parallel.launcher import launched_processes
from archwright.progress import quiet
from archwright.training.distributed import join_launched


def compress(config: CompressConfig) -> FinishedRun | MethodComparison | Preview | RunEstimate:
    """The finished run: its front, its report, and what to do with them; or several methods side by side."""
    validate_processes(config, launched_processes())
    if config.preview.preview is not None:
        return preview_spaces(config.preview.preview, out=config.output.out, seed=config.output.seed)
    if config.preview.dry_run:
        return estimate_run(config)
    if config.compare.compare:
        return compare_methods(config, config.compare.compare)
    group = join_launched(config.output.device)
    with group.fail_together():
        if group.first:
            return run_compression(config, group=group)
        with quiet():
            return assist_compression(config, group)


def validate_processes(config: CompressConfig, processes: int) -> None:
    """BadInput for what one process does, under a launcher that has started several."""
    alone = {
        "--preview": config.preview.preview is not None,
        "--dry-run": config.preview.dry_run,
        "--compare": bool(config.compare.compare),
    }
    for option, given in alone.items():
        if given and processes > 1:
            raise BadInput(f"{option} is the work of one process, got {processes} of them; leave out torchrun.")
