"""`archwright compress`: from a checkpoint and a task to a Pareto front of smaller models."""

from archwright.compression.comparison import MethodComparison, compare_methods
from archwright.compression.pipeline import CompressConfig, run_compression
from archwright.compression.preview import Preview, preview_spaces
from archwright.compression.run import FinishedRun
from archwright.configs import compress as o


def compress(
    model: o.Model,
    data: o.Data,
    supernet: o.Supernet,
    search: o.Search,
    compare: o.Compare,
    budget: o.Budget,
    measure: o.Measure,
    honesty: o.Honesty,
    output: o.Output,
    preview: o.Preview,
) -> FinishedRun | MethodComparison | Preview:
    """The finished run: its front, its report, and what to do with them; or several methods side by side."""
    if preview.preview is not None:
        return preview_spaces(preview.preview, out=output.out, seed=output.seed)
    asked = CompressConfig(model, data, supernet, search, budget, measure, honesty, output)
    return compare_methods(asked, compare.compare) if compare.compare else run_compression(asked)
