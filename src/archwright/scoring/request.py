"""One look at one untrained network: built, recorded once, judged by every proxy asked for."""

import ctypes
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any

import torch

from archwright.data.text.snippets import Snippets
from archwright.probe import Probe, record
from archwright.proxies import PROXIES, Proxy, Unscored, from_source, passes_of, roles_of
from archwright.proxies.formulas.discovered import from_formula
from archwright.proxies.pca import dimensions, spectra
from archwright.random_streams import generator
from archwright.search import Config
from archwright.spaces.architectures import ArchitectureSpace

ETAS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
"""Shares of variance at which V-PCA is also taken, as it costs nothing more."""


RECORDING_REVISION = 1
"""Of the networks that spaces build and of what `record` gives of them: raised when a change of the code changes them,
so that statistics from before are not read from disk."""
WEIGHTS, NOISE = 0, 1
"""Places that need random numbers of their own."""


@dataclass(frozen=True)
class ScoreRequest:
    """What to look at, with all that a process elsewhere needs to do it: calling it looks."""

    space: ArchitectureSpace
    config: Config
    seed: tuple[int, int]
    """Of the initial weights: that of the command, and which of its repeats."""
    batch: Snippets
    loss: str
    initial: str
    """A name of INITIALS."""
    proxies: tuple[str, ...]
    own: Mapping[str, str]
    """Source of the user's proxies, by name."""
    found: Mapping[str, str] = field(default_factory=dict)
    """Formulas of proxies that were found, by name: another machine may not have their files."""

    def __call__(self) -> "ScoreResult":
        return score_network(self)


@dataclass(frozen=True)
class ScoreResult:
    """What came of it."""

    scores: dict[str, float]
    missing: dict[str, str]
    """Proxies that could not be computed, and why."""
    seconds: float
    """Processor time of everything together."""
    peak_mb: float | None
    """Most memory held beyond what the process had before; None where the system does not tell."""
    etas: dict[str, float]
    """V-PCA by share of variance, if it was asked for."""


def score_network(at: ScoreRequest) -> ScoreResult:
    """All scores of one network."""
    begun, memory = process_time(), Memory()
    chosen = chosen_proxies(at)
    probe = probe_for(at, chosen)
    scores, missing = {}, {}
    for name, proxy in sorted(
        chosen.items(), key=lambda entry: entry[0] in at.own
    ):  # what theirs do is not seen by ours
        try:
            scores[name] = proxy.measure(probe)
        except Unscored as reason:
            missing[name] = str(reason)
    etas = swept(probe) if "v_pca" in scores else {}
    return ScoreResult(scores, missing, process_time() - begun, memory.grown_mb(), etas)


def probe_for(at: ScoreRequest, chosen: Mapping[str, Proxy]) -> Probe:
    """The network as these proxies want to see it."""
    return record_network(at, passes_of(chosen.values()), roles_of(chosen.values()))


def record_network(at: ScoreRequest, passes: tuple[str, ...], keep: tuple[str, ...]) -> Probe:
    """The network after these passes, with the outputs of these roles."""
    network = at.space.network(
        at.config, generator=generator(at.seed[0], WEIGHTS, at.seed[1]), vocabulary=at.batch.vocabulary, loss=at.loss
    )
    INITIALS[at.initial](network)
    return record(
        network,
        tensors(at.batch),
        counts=at.space.counts(at.config),
        passes=passes,
        loss=at.loss,
        generator=generator(at.seed[0], NOISE, at.seed[1]),
        keep=keep,
    )


def glorot(network: torch.nn.Module) -> None:
    """Weights of linears with variance 2 / (inputs + outputs), so that the signal does not depend on the width."""
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, torch.nn.Linear):
                module.weight.mul_((2 / sum(module.weight.shape)) ** 0.5 / module.weight.std())


INITIALS: dict[str, Callable[[Any], None]] = {"own": lambda network: None, "glorot": glorot}
"""What is done to the initial weights of a space: nothing, or another scale."""


def swept(probe: Probe) -> dict[str, float]:
    found = spectra(probe)
    return {str(eta): float(sum(dimensions(spectrum, eta) for spectrum in found)) for eta in ETAS}


def spectra_of(at: ScoreRequest) -> list[list[float]]:
    """Eigenvalues of the FFN pre-activations, layer by layer; none for a network without FFN."""
    try:
        return [spectrum.tolist() for spectrum in spectra(probe_for(at, {"v_pca": PROXIES["v_pca"]}))]
    except Unscored:
        return []


def chosen_proxies(at: ScoreRequest) -> dict[str, Proxy]:
    """The proxies of the look by name: the user's, those that were found, and listed ones."""
    carried = {name: from_source(name, source) for name, source in at.own.items() if name in at.proxies}
    carried |= {name: from_formula(text) for name, text in at.found.items() if name in at.proxies}
    return {name: carried[name] if name in carried else PROXIES[name] for name in at.proxies}


class Memory:
    """How far the memory of this process rises from now on (Linux)."""

    def __init__(self) -> None:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)  # what earlier looks freed goes back to the system, else it hides ours
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        self._before = self._field("VmRSS")

    def grown_mb(self) -> float | None:
        peak = self._field("VmHWM")
        return None if peak is None or self._before is None else max(0.0, peak - self._before) / 1024

    @staticmethod
    def _field(name: str) -> float | None:
        try:
            lines = Path("/proc/self/status").read_text().splitlines()
        except OSError:
            return None
        return next((float(line.split()[1]) for line in lines if line.startswith(name)), None)


def tensors(batch: Snippets) -> dict[str, torch.Tensor]:
    return {"input_ids": torch.from_numpy(batch.input_ids), "labels": torch.from_numpy(batch.labels)}
