"""`archwright compress`: from a checkpoint and a task to a Pareto front of smaller models."""

from archwright.jobs import options as o
from archwright.jobs.compare import Compared, compared
from archwright.jobs.preview import Previewed, previewed
from archwright.jobs.run import FinishedRun
from archwright.jobs.single import Asked, compressed


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
) -> FinishedRun | Compared | Previewed:
    """The finished run: its front, its report, and what to do with them; or several methods side by side."""
    if preview.preview is not None:
        return previewed(preview.preview, out=output.out, seed=output.seed)
    asked = Asked(model, data, supernet, search, budget, measure, honesty, output)
    return compared(asked, compare.compare) if compare.compare else compressed(asked)
