"""What is recorded of an untrained network: named passes, each run once and only when needed."""

from archwright.probe.passes import LOSSES, PASSES
from archwright.probe.probe import ROLES, Layer, Probe, Signal, Weight
from archwright.probe.record import record

REVISION = 1
"""Raise it when the same network and batch give another probe: scores that were kept are then computed again."""

__all__ = ["LOSSES", "PASSES", "REVISION", "ROLES", "Layer", "Probe", "Signal", "Weight", "record"]
