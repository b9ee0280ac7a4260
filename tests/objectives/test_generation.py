"""One more token from a cache: the answer is the whole text's, each time, and encoders are refused."""

import pytest
import torch

from archwright.errors import BadInput
from archwright.objectives.generation import measure_generation, one_token
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec, SubnetSpec
from tests.tiny import DECODERS, shared_tiny

SPECS: dict[str, SubnetSpec] = {
    "whole": (LayerSpec(4, 10),) * 3,
    "holes": (LayerSpec(0, 4), LayerSpec(0, 0), LayerSpec(2, 0)),
    "no attention": (LayerSpec(0, 10),) * 3,
}


@pytest.mark.parametrize("name", DECODERS)
def test_a_step_is_the_last_token_of_the_whole_text_every_time(name: str) -> None:
    ids = torch.arange(3, 10)[None]
    for spec in SPECS.values():
        network = extract(shared_tiny(name, None, "lm"), spec)
        with torch.inference_mode():
            step = one_token(network, {"input_ids": ids, "attention_mask": torch.ones_like(ids)})
            expected = network(input_ids=torch.cat([ids, ids[:, -1:]], 1)).logits[:, -1:]
            for _ in range(3):
                torch.testing.assert_close(step(), expected, rtol=0, atol=1e-6)


def test_every_subnetwork_is_timed() -> None:
    timings = measure_generation(shared_tiny("llama-groups", None, "lm"), SPECS, length=12, rounds=3)
    assert all(0 < timings[name].low <= timings[name].median <= timings[name].high for name in SPECS)
    assert timings["whole"].median > timings["holes"].median


def test_encoders_write_nothing() -> None:
    with pytest.raises(BadInput, match="--task lm"):
        measure_generation(shared_tiny("bert"), SPECS)
