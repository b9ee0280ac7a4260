"""`archwright compress`: from a checkpoint and a task to a Pareto front of smaller models."""

from archwright.compression.pipeline import run_compression
from archwright.compression.run import FinishedRun
from archwright.compression.studies.comparison import MethodComparison, compare_methods
from archwright.compression.studies.estimate import RunEstimate, estimate_run
from archwright.compression.studies.preview import Preview, preview_spaces
from archwright.configs.compress import CompressConfig


def compress(config: CompressConfig) -> FinishedRun | MethodComparison | Preview | RunEstimate:
    """The finished run: its front, its report, and what to do with them; or several methods side by side."""
    if config.preview.preview is not None:
        return preview_spaces(config.preview.preview, out=config.output.out, seed=config.output.seed)
    if config.preview.dry_run:
        return estimate_run(config)
    return compare_methods(config, config.compare.compare) if config.compare.compare else run_compression(config)
