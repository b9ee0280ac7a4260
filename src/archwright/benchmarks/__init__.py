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
            "archwright.benchmarks.lts_gpt2:LTS_GPT2", "GPT-2-like architectures, perplexity on WikiText-103 or LM1B"
        ),
        "nas-bench-nlp": Lazy(
            "archwright.benchmarks.nas_bench_nlp:NAS_BENCH_NLP", "recurrent cells, test loss on WikiText-2"
        ),
        "hw-gpt-bench": Lazy(
            "archwright.benchmarks.hw_gpt_bench:HW_GPT_BENCH",
            "decoders cut out of a super-network (shared weights), perplexity on OpenWebText",
        ),
        "width-depth-heads": Lazy(
            "archwright.benchmarks.width_depth_heads:WIDTH_DEPTH_HEADS",
            "decoders on a grid of width, depth and heads, trained from scratch",
        ),
        "micro-lm": Lazy(
            "archwright.benchmarks.micro_lm:MICRO_LM",
            "small encoders matched in size, trained here on masked words of WikiText-2; comes with the package",
        ),
    },
    group="archwright.benchmarks",
)
"""Descriptions stand here because the modules load numpy and torch, which `--help` must not."""
