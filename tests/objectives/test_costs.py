"""Costs are those of the extracted network, and their list can be read without torch."""

import subprocess
import sys

import pytest
import torch

from archwright.networks.pruned import PrunedNetwork
from archwright.objectives.costs import COSTS, OBJECTIVES
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec

KEEP = (LayerSpec(2, 7), LayerSpec(0, 0), LayerSpec((0, 3), 0))


def test_parameters_are_counted_on_the_extracted_network(any_family: PrunedNetwork) -> None:
    small = extract(any_family, KEEP)
    of = read_anatomy(any_family.config)
    total = sum(p.numel() for p in small.parameters())
    embeddings = sum(p.numel() for n, p in small.named_parameters() if "embeddings" in n)
    assert COSTS["parameters"].measure(of, KEEP, length=8) == total
    assert COSTS["nonembedding_parameters"].measure(of, KEEP, length=8) == total - embeddings


def test_flops_are_those_torch_counts(bert: PrunedNetwork) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    small = extract(bert, KEEP).eval()
    small.set_attn_implementation("eager")  # the counter sees nothing of the fused kernel on a CPU
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        small(input_ids=torch.ones(1, 8, dtype=torch.long))
    assert COSTS["flops"].measure(read_anatomy(bert.config), KEEP, length=8) == counter.get_total_flops()


@pytest.mark.parametrize("name", COSTS)
def test_a_cost_falls_with_the_network(name: str, bert: PrunedNetwork) -> None:
    of = read_anatomy(bert.config)
    whole, part, none = (
        COSTS[name].measure(of, spec, length=8) for spec in (of.full, KEEP, (LayerSpec(0, 0),) * of.layers)
    )
    assert whole > part > none > 0


def test_every_objective_has_one_line_of_description() -> None:
    assert OBJECTIVES.keys() == {"validation_error", "latency_ms", "generation_ms", *COSTS}
    assert all(line and "\n" not in line for line in OBJECTIVES.descriptions().values())


def test_the_list_loads_no_torch() -> None:
    code = """
import sys, archwright.objectives.costs as costs
assert costs.OBJECTIVES and not {"torch", "transformers", "scipy"} & sys.modules.keys()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
