"""Tables of trained architectures, each with its space and its licence."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from archwright.benchmarks.table import Benchmark, Missing, Row

__all__ = ["BENCHMARKS", "Benchmark", "Missing", "Row", "Source"]


@dataclass(frozen=True)
class Source:
    """A benchmark before its files are read."""

    summary: str
    target: str
    """module:function that reads a folder: (folder, variant) -> Benchmark."""
    folder: str
    """Name of its folder among the data."""
    variants: tuple[str, ...]
    """The default first."""
    origin: str
    """Where its files can be downloaded."""
    published_repeats: str | None = None
    """module:function that reads the published ablations of a folder."""

    @property
    def load(self) -> Callable[[Path, str], Benchmark]:
        module, _, name = self.target.partition(":")
        found: Callable[[Path, str], Benchmark] = getattr(import_module(module), name)
        return found

    def repeats(self, folder: Path) -> dict[str, dict[str, list[dict[str, float]]]]:
        """Published metrics of a few rows over "seeds" and "batches": kind, row, one entry per repeat."""
        if self.published_repeats is None:
            return {}
        module, _, name = self.published_repeats.partition(":")
        found: dict[str, dict[str, list[dict[str, float]]]] = getattr(import_module(module), name)(folder)
        return found


BENCHMARKS: dict[str, Source] = {
    "nas-bert": Source(
        "FlexiBERT architectures, pre-trained and fine-tuned on GLUE",
        "archwright.benchmarks.nas_bert:nas_bert",
        "nas-bert",
        ("trained", "described", "published"),
        "https://github.com/aaronserianni/training-free-nas",
        "archwright.benchmarks.nas_bert:repeats",
    ),
    "lts-gpt2": Source(
        "GPT-2-like architectures, perplexity on WikiText-103",
        "archwright.benchmarks.lts_gpt2:lts_gpt2",
        "lts-gpt2",
        ("trained",),
        "https://github.com/microsoft/archai/tree/neurips-lts",
    ),
    "nas-bench-nlp": Source(
        "recurrent cells, test loss on WikiText-2",
        "archwright.benchmarks.nas_bench_nlp:nas_bench_nlp",
        "nas-bench-nlp",
        ("trained",),
        "https://github.com/fmsnew/nas-bench-nlp-release",
        "archwright.benchmarks.nas_bench_nlp:repeats",
    ),
}
