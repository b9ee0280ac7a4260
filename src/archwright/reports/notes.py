"""What the sections of the pages explain to their readers."""

from collections.abc import Iterable

FRONTS = (
    "Lower and further left is better. One point per member of a front; a line holds an error until the next larger "
    "network that has a lower one. Fronts were chosen on validation data, so on test data a line may leave points "
    "behind. A name below the plot hides or shows its method."
)
VOLUMES = (
    "The hypervolume is the area that everything a method tried covers up to the reference (1, 1), {against} against "
    "share of the non-embedding parameters; larger is better. Half size: the network with the lowest validation error "
    "among those with at most half of the non-embedding parameters."
)
BINS = (
    "For every share that was removed: the best test score of a network at least that small, as a share of the "
    "unpruned model's (Klein et al. 2024, Figure 8). The lines are at 100, 95 and 90 %. Choosing by test score "
    "flatters all methods alike; to pick a network, use the validation error."
)
PROGRESS = (
    "The hypervolume of everything tried so far. Time is wall-clock of the method, as far as it was recorded for each "
    "network."
)
HONESTY = (
    "{k} sub-networks drawn at random, each once with the weights it inherits from the super-network and once trained "
    "by itself from the pre-trained weights. The more alike both rank them, the more the search can be trusted: 1 is "
    "the same order, 0 no relation. Intervals are 95 % bootstrap intervals."
)
QUANTIZED = (
    "The unpruned model and the front, as they are and with quantized weights. Memory is that of the stored weights; "
    "latency is measured."
)
PROTOCOL = (
    "The training rows are split 70/30 into rows that train and rows that judge; the given development set is the test "
    "set, which no choice has seen.",
    "To compare hypervolumes across methods and seeds, both objectives (validation error and share of the "
    "non-embedding parameters) are replaced by their quantiles over everything that the compared runs of one task and "
    "model have tried: 0 is the smallest value of all, 1 the largest, equal values share the middle of their places.",
    "The hypervolume of these points up to the reference (2, 2) is at most 4; the regret is what is missing to 4. "
    "Curves show the mean over seeds and one standard deviation.",
    "Average ranks: {samples:,} bootstrap samples, each of which draws a task and one seed of every method on it and "
    "ranks the methods by their regret at every step, 1 the best (Feurer et al. 2015).",
    "Scores within sizes: the best test score among the networks of a front with at most 20, 30, ... 90 % of the "
    "non-embedding parameters, relative to the unpruned model, with lines at 95 and 90 %. Sizes and shares are of the "
    "non-embedding parameters, because embeddings are never pruned here.",
)


def listed(names: Iterable[str]) -> str:
    """a, b and c."""
    *first, last = list(names) or [""]
    return f"{', '.join(first)} and {last}" if first else last
