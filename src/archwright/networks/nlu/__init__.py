"""Encoders whose layers are BERT or MobileBERT blocks with FFNs of their own width (Wang 2025, W-PCA, Section 4)."""

from archwright.networks.nlu.config import BlockPlan, NluConfig, nlu_counts
from archwright.networks.nlu.network import (
    BLOCKS,
    HEADS,
    NluEmbeddings,
    NluLayer,
    NluModel,
    NluNetwork,
    build_block,
    build_embeddings,
    build_nlu,
)
from archwright.networks.nlu.supernet import (
    NluSupernet,
    NluSupernetConfig,
    build_nlu_supernet,
    extract_path,
    extract_path_body,
    path,
)

__all__ = [
    "BLOCKS",
    "HEADS",
    "BlockPlan",
    "NluConfig",
    "NluEmbeddings",
    "NluLayer",
    "NluModel",
    "NluNetwork",
    "NluSupernet",
    "NluSupernetConfig",
    "build_block",
    "build_embeddings",
    "build_nlu",
    "build_nlu_supernet",
    "extract_path",
    "extract_path_body",
    "nlu_counts",
    "path",
]
