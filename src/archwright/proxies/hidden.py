"""Correlations inside the hidden states of a layer (training-free-nas Section 3.5)."""

from typing import TypeVar

import torch

from archwright.probe import Probe, shared
from archwright.proxies.proxy import Unscored
from archwright.proxies.spectra import correlation_spectrum, divergence_score

Found = TypeVar("Found")


def states(probe: Probe) -> list[torch.Tensor]:
    """Hidden state after every layer, batch x time x width."""
    found = [layer.output.value for layer in probe.layers if layer.output is not None]
    if not found:
        raise Unscored("No hidden state of this network was recorded.")
    return found


def units_score(state: torch.Tensor) -> float:
    """Correlation between units over all tokens."""
    return divergence_score(correlation_spectrum(state.flatten(0, 1).mT))


def entering_score(state: torch.Tensor) -> float:
    """The same of the state that enters each step, zero at first, as the public RNN code has it."""
    before = torch.cat([torch.zeros_like(state[:, :1]), state[:, :-1]], dim=1)
    return units_score(before)


def inputs_score(state: torch.Tensor) -> float:
    """Correlation between examples, as the paper's text has it."""
    if len(state) < 2:
        raise Unscored("A correlation between examples needs two; the batch has only one.")
    return divergence_score(correlation_spectrum(state.flatten(1)))


@shared
def units_scores(probe: Probe) -> list[float | Unscored]:
    """Of every layer; where a layer has none, why."""
    return [attempted(state) for state in states(probe)]


def attempted(state: torch.Tensor) -> float | Unscored:
    try:
        return units_score(state)
    except Unscored as reason:
        return reason


def known(score: float | Unscored) -> float:
    if isinstance(score, Unscored):
        raise score
    return score


def hidden_covariance(probe: Probe) -> float:
    """Mean over layers."""
    scores = [known(score) for score in units_scores(probe)]
    return sum(scores) / len(scores)


def hidden_covariance_inputs(probe: Probe) -> float:
    """Mean over layers of the N x N reading."""
    found = states(probe)
    return sum(inputs_score(state) for state in found) / len(found)


def hidden_covariance_1(probe: Probe) -> float:
    return known(layer(units_scores(probe), 1))


def hidden_covariance_2(probe: Probe) -> float:
    return known(layer(units_scores(probe), 2))


def hidden_covariance_3(probe: Probe) -> float:
    return known(layer(units_scores(probe), 3))


def hidden_covariance_entering_1(probe: Probe) -> float:
    return entering_score(layer(states(probe), 1))


def hidden_covariance_entering_2(probe: Probe) -> float:
    return entering_score(layer(states(probe), 2))


def hidden_covariance_entering_3(probe: Probe) -> float:
    return entering_score(layer(states(probe), 3))


def layer(found: list[Found], number: int) -> Found:
    if len(found) < number:
        raise Unscored(f"There is no layer {number}; the network has {len(found)}.")
    return found[number - 1]
