"""FlexiBERT: encoders whose layers differ in how they mix tokens (Tuli et al. 2022; Serianni and Kalita 2023)."""

from archwright.networks.flexibert.config import FlexiBertConfig, LayerPlan
from archwright.networks.flexibert.mixers import MIXERS
from archwright.networks.flexibert.network import (
    HEADS,
    FlexiBertModel,
    FlexiBertNetwork,
    build_flexibert,
    flexibert_counts,
)

__all__ = [
    "HEADS",
    "MIXERS",
    "FlexiBertConfig",
    "FlexiBertModel",
    "FlexiBertNetwork",
    "LayerPlan",
    "build_flexibert",
    "flexibert_counts",
]
