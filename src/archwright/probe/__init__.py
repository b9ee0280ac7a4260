"""One look at a network: named passes, each run once and only when needed."""

from archwright.probe.losses import LOSSES
from archwright.probe.probe import GRADIENT_FREE, PASSES, ROLES, Layer, Probe, Signal, Weight, shared
from archwright.probe.record import record

__all__ = ["GRADIENT_FREE", "LOSSES", "PASSES", "ROLES", "Layer", "Probe", "Signal", "Weight", "record", "shared"]
