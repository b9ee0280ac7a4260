"""AdamW for large networks: weights of any precision, updated in float32 a chunk at a time, moments in 8 bit or 32.

Two things go wrong with an ordinary AdamW on bfloat16 weights: it keeps its moments in bfloat16 too, and an update of
less than half of a weight's last digit, which most are, is lost. Here all arithmetic is float32, and what is stored in
fewer digits is rounded up or down at random, so that it is right on average.

Moments in 8 bit take 2 bytes per weight instead of 8. As in Dettmers et al. (2022) every block of numbers has a scale
of its own, its largest one; unlike there the 8 bit hold a root of the number, which needs no table: the square root of
the mean gradient and the fourth root of the mean square, so that numbers a thousandth as large still have digits.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import nn

from archwright.random_streams import WEIGHT_ROUNDING

BLOCK = 256
"""Numbers that share a scale."""
CHUNK = {"cpu": 2**18}
"""Numbers worked on at once: on a CPU what its cache holds."""
LARGE_CHUNK = 2**24
SIGNED, UNSIGNED = 127, 255


class ChunkedAdamW(torch.optim.Optimizer):
    """AdamW (Loshchilov and Hutter 2019) of which no temporary is larger than a chunk.

    With `packed` both moments are held in 8 bit. The random roundings of a step depend on the seed, the step and the
    place of the parameter alone, so that a resumed training goes on bit by bit.
    """

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        *,
        lr: float,
        betas: tuple[float, float],
        eps: float,
        packed: bool,
        seed: int = 0,
    ):
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0})
        self.packed, self.seed = packed, seed

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """One update from the gradients that the parameters have."""
        place = 0
        for group in self.param_groups:
            for parameter in group["params"]:
                place += 1
                if parameter.grad is not None:
                    self._update(parameter, group, place)

    def _update(self, parameter: nn.Parameter, group: dict[str, Any], place: int) -> None:
        state = self.state[parameter]
        if not state:
            state |= empty_moments(parameter, packed=self.packed)
        state["step"] += 1
        number = int(state["step"])
        weights, gradient = parameter.view(-1), parameter.grad.reshape(-1)
        seeds = np.random.SeedSequence((self.seed, WEIGHT_ROUNDING, number, place)).generate_state(1)
        draws = torch.Generator(parameter.device).manual_seed(int(seeds[0]))  # of the device that it is for
        rounds = self.packed or parameter.dtype not in (torch.float32, torch.float64)
        size = CHUNK.get(parameter.device.type, LARGE_CHUNK)
        for start in range(0, len(weights), size):
            part = slice(start, min(start + size, len(weights)))
            values, slope = weights[part].float(), gradient[part].float()
            noise = torch.rand(values.shape, generator=draws, device=values.device) if rounds else None
            blocks = slice(part.start // BLOCK, -(-part.stop // BLOCK))
            mean, square = self._read(state, part, blocks)
            mean.lerp_(slope, 1 - group["betas"][0])
            square.mul_(group["betas"][1]).addcmul_(slope, slope, value=1 - group["betas"][1])
            corrections = [1 - beta**number for beta in group["betas"]]
            length = (square / corrections[1]).sqrt_().add_(group["eps"])
            values.mul_(1 - group["lr"] * group["weight_decay"])
            values.addcdiv_(mean, length, value=-group["lr"] / corrections[0])
            self._write(state, part, blocks, mean, square, noise)
            weights[part] = round_randomly(values, weights.dtype, noise)

    def _read(self, state: dict[str, Any], part: slice, blocks: slice) -> tuple[torch.Tensor, torch.Tensor]:
        """Both moments of a chunk in float32, to be changed in place."""
        if not self.packed:
            return state["exp_avg"][part], state["exp_avg_sq"][part]
        roots = state["exp_avg"][part].float() / SIGNED
        mean = spread(state["exp_avg_scale"][blocks], len(roots)) * roots * roots.abs()
        square = spread(state["exp_avg_sq_scale"][blocks], len(roots)) * (state["exp_avg_sq"][part] / UNSIGNED) ** 4
        return mean, square

    def _write(
        self,
        state: dict[str, Any],
        part: slice,
        blocks: slice,
        mean: torch.Tensor,
        square: torch.Tensor,
        noise: torch.Tensor | None,
    ) -> None:
        if not self.packed:
            return  # they were changed in place
        size = mean.abs()
        scale = state["exp_avg_scale"][blocks] = block_largest(size)
        codes = (size / spread(scale, len(size))).sqrt_().mul_(SIGNED).add_(noise).floor_()
        state["exp_avg"][part] = (codes.clamp_(max=SIGNED) * mean.sign()).to(torch.int8)
        scale = state["exp_avg_sq_scale"][blocks] = block_largest(square)
        codes = (square / spread(scale, len(square))).sqrt_().sqrt_().mul_(UNSIGNED).add_(noise).floor_()
        # What is not zero must not become zero: a gradient would be divided by nothing.
        state["exp_avg_sq"][part] = codes.clamp_(max=UNSIGNED).clamp_(min=1).mul_(square > 0).to(torch.uint8)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As torch has it, but that moments keep the precision they have: torch gives them that of the weights."""
        super().load_state_dict({**state_dict, "state": {}})
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        for place, moments in state_dict["state"].items():
            parameter = parameters[int(place)]
            self.state[parameter] = {
                name: value.clone() if name == "step" else value.to(parameter.device, copy=True)
                for name, value in moments.items()
            }


def empty_moments(parameter: nn.Parameter, *, packed: bool) -> dict[str, torch.Tensor]:
    """The state of a parameter before its first step."""
    count, device = parameter.numel(), parameter.device
    step = {"step": torch.zeros((), dtype=torch.float32)}
    if not packed:
        return step | {name: torch.zeros(count, device=device) for name in ("exp_avg", "exp_avg_sq")}
    scales = {name: torch.zeros(-(-count // BLOCK), device=device) for name in ("exp_avg_scale", "exp_avg_sq_scale")}
    mean = torch.zeros(count, dtype=torch.int8, device=device)
    return step | scales | {"exp_avg": mean, "exp_avg_sq": torch.zeros(count, dtype=torch.uint8, device=device)}


def block_largest(values: torch.Tensor) -> torch.Tensor:
    """The largest number of every block, a scale that may be divided by."""
    padded = nn.functional.pad(values, (0, -len(values) % BLOCK))
    return padded.view(-1, BLOCK).amax(1).clamp_(min=torch.finfo(torch.float32).tiny)


def spread(scales: torch.Tensor, count: int) -> torch.Tensor:
    """For every number of a chunk the scale of its block."""
    return scales.repeat_interleave(BLOCK)[:count]


def round_randomly(values: torch.Tensor, dtype: torch.dtype, noise: torch.Tensor | None) -> torch.Tensor:
    """The numbers in this precision; in bfloat16 up or down at random, so that their mean is right.

    The upper half of a float32 is a bfloat16: less than one unit of it is added before the lower half is cut off.
    """
    if dtype != torch.bfloat16 or noise is None:
        return values.to(dtype)
    bits = values.view(torch.int32) + (noise * 2**16).to(torch.int32)
    return (bits & -(2**16)).view(torch.float32).to(torch.bfloat16)
