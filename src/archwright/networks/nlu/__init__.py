"""Encoders whose layers are BERT or MobileBERT blocks with FFNs of their own width (Wang 2025, W-PCA, Section 4)."""

from archwright.networks.nlu.config import BlockPlan, NluConfig
from archwright.networks.nlu.counting import counted
from archwright.networks.nlu.layers import BLOCKS, NluEmbeddings, NluLayer
from archwright.networks.nlu.network import HEADS, NluModel, NluNetwork
from archwright.networks.nlu.stack import block, embeddings, untrained
from archwright.networks.nlu.supernet import NluSupernet, NluSupernetConfig, path, taken, taken_body, untrained_supernet

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
    "block",
    "counted",
    "embeddings",
    "path",
    "taken",
    "taken_body",
    "untrained",
    "untrained_supernet",
]
