"""Tables of trained architectures, each with its space and its licence."""

from archwright.benchmarks.benchmark import Benchmark, BenchmarkTable, Missing, Row
from archwright.registry import Lazy, Registry

__all__ = ["BENCHMARKS", "Benchmark", "BenchmarkTable", "Missing", "Row"]

BENCHMARKS: Registry[Benchmark] = Registry(
    "benchmark",
    {
        "nas-bert": Lazy(
            "archwright.benchmarks.nas_bert:NAS_BERT", "FlexiBERT architectures, pre-trained and fine-tuned on GLUE"
        ),
        "lts-gpt2": Lazy(
            "archwright.benchmarks.lts_gpt2:LTS_GPT2", "GPT-2-like architectures, perplexity on WikiText-103"
        ),
        "nas-bench-nlp": Lazy(
            "archwright.benchmarks.nas_bench_nlp:NAS_BENCH_NLP", "recurrent cells, test loss on WikiText-2"
        ),
    },
    group="archwright.benchmarks",
)
"""Descriptions stand here because the modules load numpy and torch, which `--help` must not."""
