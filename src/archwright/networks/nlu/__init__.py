"""Encoders whose layers are BERT or MobileBERT blocks with FFNs of their own width (Wang 2025, W-PCA, Section 4)."""

from archwright.networks.nlu.config import BlockPlan, NluConfig
from archwright.networks.nlu.counting import nlu_counts
from archwright.networks.nlu.initial_weights import build_block, build_embeddings, build_nlu
from archwright.networks.nlu.layers import BLOCKS, NluEmbeddings, NluLayer
from archwright.networks.nlu.network import HEADS, NluModel, NluNetwork
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
