"""Streams of random numbers: every place that draws some has a stream with a name here, so that none is used twice.

A stream is the number after the seed of a command: `numpy.random.default_rng((seed, stream, ...))`, or `generator(seed,
stream, ...)` for torch. Numbers are part of every published result: never change one, only add. Two pipelines may use
the same number, because each begins with seeds of its own.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# score, rank, discover: resampling and baselines of a ranking, and random architectures
RESAMPLING = 0
BASELINES = 1
RANDOM_ARCHITECTURES = 1
FOLDS = 7
SPLIT_DRAWS = 8
"""Which split into folds a bootstrap sample takes, and resamples behind standard errors."""
CHECKED_NETWORKS = 9
"""Networks on which the statistics of found formulas are compared with counts."""
ROW_CHOICE = 20
"""Which rows of a large benchmark are scored."""
CEILING = 21
"""Resamples behind the interval of a noise ceiling."""
SCALING_LAW = 22

# scoring and design: initial weights of untrained networks, and what `record` draws
INITIAL_WEIGHTS = 0
PROBE_NOISE = 1

# compress: the order of training batches, by what is trained (RunContext.training)
FINETUNING_BATCHES = 0
SUPERNET_BATCHES = 1
CALIBRATION_BATCHES = 2
RECOVERY_BATCHES = 3
STAND_ALONE_BATCHES = 4
FIDELITY = 5
RANDOM_SUBNETS = 7
TIMING_BATCHES = 9
PAIRED_ROWS = 8
"""Resamples of rows behind the interval of a loss."""
VALIDATION_HALVES = 10
"""Which validation rows search, and which re-score."""
TEST_SAMPLE = 11
"""Which test rows are answered where --minutes does not suffice for all."""
TAUGHT_ROWS = 12
"""Which training rows the original answers where --minutes does not suffice for all."""
VECTOR_NOISE = 13
"""Targets around sentence vectors, by which importance is measured."""
LARGE_FILES = 14
"""Which rows of a large file are kept where few are asked for."""

WEIGHT_ROUNDING = 15
"""Whether weights and moments in few digits are rounded up or down."""
ADAPTER_WEIGHTS = 16
"""First weights of low-rank adapters."""

# train
STUDENT_WEIGHTS = 11
DISTILLATION_PROJECTIONS = 12
VALIDATION_BATCHES = 13
"""Of pre-training: the order of the rows, their masks, the generator's draws."""
ABLATION_ARCHITECTURES = 14
INHERITED_ROWS = 15
"""Rows on which a student's first weights are fitted to its teacher."""
AUGMENTED_ROWS = 16
"""Which words of training rows are exchanged, and for which."""
WATCHED_ROWS = 17
"""Rows whose answers show that a training has collapsed."""
RIVAL_DESIGNS = 18
"""Random designs of a student's size."""


def generator(*seed: int) -> "torch.Generator":
    """Random numbers of their own for the seed of a command, a stream, and repeats within it."""
    import numpy as np
    import torch

    return torch.Generator().manual_seed(int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> 1))
