"""One untrained network scored: built, recorded once, measured by every proxy of the request."""

import ctypes
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import torch

from archwright.data.text.snippets import Snippets
from archwright.networks.roles import Counts
from archwright.probe import Probe, record
from archwright.proxies import PROXIES, Proxy, Unscored, passes_of, roles_of
from archwright.proxies.pca import dimensions, spectra
from archwright.random_streams import INITIAL_WEIGHTS, PROBE_NOISE, generator
from archwright.scoring.initial_weights import INITIALS
from archwright.search import Config
from archwright.spaces.architectures import ArchitectureSpace

ETAS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
"""Shares of variance at which V-PCA is also taken, as it costs nothing more."""


@dataclass(frozen=True)
class ScoreRequest:
    """What to score, with all that another process needs for it: calling it gives the result."""

    space: ArchitectureSpace
    config: Config
    seed: tuple[int, int]
    """Of the initial weights: that of the command, and which of its repeats."""
    batch: Snippets
    loss: str
    initial: str
    """A name of INITIALS."""
    proxies: Mapping[str, Proxy]
    """By name, as records: another machine may not have the user's files."""

    def __call__(self) -> "ScoreResult":
        return score_network(self)


@dataclass(frozen=True)
class ScoreResult:
    """Scores of one network."""

    scores: dict[str, float]
    missing: dict[str, str]
    """Proxies that could not be computed, and why."""
    seconds: float
    """Processor time of everything together."""
    peak_mb: float | None
    """Most memory held beyond what the process had before; None where the system does not tell."""
    etas: dict[str, float]
    """V-PCA by share of variance, if v_pca was among the proxies."""


def score_network(request: ScoreRequest) -> ScoreResult:
    """Builds and records the network, and measures every proxy; the user's last, so that ours cannot see their work."""
    begun, memory = process_time(), MemoryPeak()
    proxies = request.proxies.values()
    probe = record_network(request, passes_of(proxies), roles_of(proxies))
    scores, missing = {}, {}
    for proxy in sorted(proxies, key=lambda proxy: proxy.origin == "own" and bool(proxy.content)):
        try:
            scores[proxy.name] = proxy.measure(probe)
        except Unscored as reason:
            missing[proxy.name] = str(reason)
    etas = {}
    if "v_pca" in scores:
        etas = {str(eta): float(sum(dimensions(spectrum, eta) for spectrum in spectra(probe))) for eta in ETAS}
    return ScoreResult(scores, missing, process_time() - begun, memory.grown_mb(), etas)


@dataclass(frozen=True)
class CostRequest:
    """What each proxy of the request takes by itself; they need the same passes, which run once for all of them."""

    request: ScoreRequest

    def __call__(self) -> dict[str, dict[str, float | None]]:
        """Core-seconds and memory by name: the recording, and the proxy with nothing of the others remembered."""
        begun, memory = process_time(), MemoryPeak()
        proxies = self.request.proxies
        probe = record_network(self.request, passes_of(proxies.values()), roles_of(proxies.values()))
        recorded = process_time() - begun
        seconds = {}
        for name, proxy in proxies.items():
            probe.memo.clear()
            begun = process_time()
            with suppress(Unscored):
                proxy.measure(probe)
            seconds[name] = recorded + process_time() - begun
        peak = memory.grown_mb()
        return {name: {"seconds": value, "peak_mb": peak} for name, value in seconds.items()}


def count_network(counts: Counts, proxy: Proxy) -> float:
    """The score of a proxy that reads nothing but counts."""
    return proxy.measure(Probe(frozenset(), {}, counts, (), (), None, {}, None))


def record_network(request: ScoreRequest, passes: tuple[str, ...], keep: tuple[str, ...]) -> Probe:
    """The network after these passes, with the outputs of these roles."""
    seed, repeat = request.seed
    network = build_network(request)
    INITIALS[request.initial](network)
    return record(
        network,
        batch_tensors(request.batch),
        counts=request.space.counts(request.config),
        passes=passes,
        loss=request.loss,
        generator=generator(seed, PROBE_NOISE, repeat),
        keep=keep,
    )


def record_shapes(request: ScoreRequest) -> Probe:
    """The network without a pass, for what reads nothing but shapes: no weight is drawn where its space allows that."""
    try:
        with torch.device("meta"):
            network = build_network(request)
    except (NotImplementedError, RuntimeError):  # first weights that are computed, not drawn
        network = build_network(request)
    return record(network, batch_tensors(request.batch), counts=request.space.counts(request.config), passes=())


def build_network(request: ScoreRequest) -> Any:
    """With the words of the batch alone."""
    seed, repeat = request.seed
    return request.space.network(
        request.config,
        generator=generator(seed, INITIAL_WEIGHTS, repeat),
        vocabulary=request.batch.vocabulary,
        loss=request.loss,
    )


def ffn_spectra(request: ScoreRequest) -> list[list[float]]:
    """Eigenvalues of the FFN pre-activations, layer by layer; none for a network without FFN."""
    v_pca = PROXIES["v_pca"]
    try:
        return [spectrum.tolist() for spectrum in spectra(record_network(request, v_pca.passes, v_pca.roles))]
    except Unscored:
        return []


def batch_tensors(batch: Snippets) -> dict[str, torch.Tensor]:
    return {"input_ids": torch.from_numpy(batch.input_ids), "labels": torch.from_numpy(batch.labels)}


class MemoryPeak:
    """How far the memory of this process rises from now on (Linux)."""

    def __init__(self) -> None:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)  # what earlier work freed goes back to the system, else it hides ours
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        self._before = self._status("VmRSS")

    def grown_mb(self) -> float | None:
        peak = self._status("VmHWM")
        return None if peak is None or self._before is None else max(0.0, peak - self._before) / 1024

    @staticmethod
    def _status(name: str) -> float | None:
        try:
            lines = Path("/proc/self/status").read_text().splitlines()
        except OSError:
            return None
        return next((float(line.split()[1]) for line in lines if line.startswith(name)), None)
