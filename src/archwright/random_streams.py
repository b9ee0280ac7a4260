"""Streams of random numbers: one per place that needs some, each with a name."""

import numpy as np
import torch


def generator(*seed: int) -> torch.Generator:
    """Random numbers of their own for every place that needs some."""
    return torch.Generator().manual_seed(int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> 1))
