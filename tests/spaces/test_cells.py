"""The space of recurrent cells: lists that always mean a cell, and one of them for all that mean the same."""

import json
import random
import zipfile
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from archwright.errors import BadInput
from archwright.networks.cells.canonical import canonical_recipe, rename_nodes
from archwright.networks.cells.recipe import OPS, Recipe, check_recipe
from archwright.search import Config, crossover, largest, middle, mutate, sample, smallest
from archwright.spaces import ARCHITECTURES
from archwright.spaces.cell_encoding import decode, encode, missing_effects
from archwright.spaces.cells import CellSpace

SPACE = CellSpace()
PLAIN: Recipe = {
    "node_0": {"op": "linear", "input": ["x", "h_prev_0"]},
    "h_new_0": {"op": "activation_tanh", "input": ["node_0"]},
}


@pytest.fixture(scope="module")
def recipes(data_dir: Path) -> list[Recipe]:
    with zipfile.ZipFile(data_dir / "nas-bench-nlp" / "train_logs_wikitext-2" / "logs.zip") as archive:
        return [json.loads(json.loads(archive.read(name))["recepie"]) for name in archive.namelist()]


def shuffled(recipe: Recipe, seed: int) -> Recipe:
    """The same cell in other words: nodes renamed and moved, inputs and states but the main one swapped."""
    rng = random.Random(seed)
    plain = [name for name in recipe if not name.startswith("h_new_")]
    names = dict(zip(plain, rng.sample([f"n{number}" for number in range(len(plain))], len(plain)), strict=True))
    if "h_new_2" in recipe and rng.random() < 0.5:
        names |= {f"{end}_{k}": f"{end}_{3 - k}" for end in ("h_prev", "h_new") for k in (1, 2)}
    other = rename_nodes(recipe, names)
    for node in other.values():
        if OPS[node["op"]].commutes:
            rng.shuffle(node["input"])
    return {name: other[name] for name in rng.sample(list(other), len(other))}


def test_the_list_of_spaces_has_it() -> None:
    assert isinstance(ARCHITECTURES["rnn"], CellSpace)


def test_every_published_recipe_has_a_list(recipes: list[Recipe]) -> None:
    for recipe in recipes:
        config = encode(canonical_recipe(recipe))
        assert config is not None
        SPACE.check(config)
        assert decode(config) == canonical_recipe(recipe)


def test_canonical_does_not_depend_on_names_and_order(recipes: list[Recipe]) -> None:
    for seed, recipe in enumerate(recipes):
        assert SPACE.canonical({"recipe": shuffled(recipe, seed)}) == SPACE.canonical({"recipe": recipe})


def test_canonical_keeps_the_counts(recipes: list[Recipe]) -> None:
    for recipe in recipes[:10]:
        config = {"recipe": recipe}
        assert SPACE.counts(SPACE.canonical(config)) == SPACE.counts(config)


def test_different_cells_stay_different() -> None:
    sigmoid = {**PLAIN, "h_new_0": {"op": "activation_sigm", "input": ["node_0"]}}
    gated = {"op": "blend", "input": ["node_0", "h_prev_0", "h_prev_1"]}
    two = {**PLAIN, "h_new_1": {"op": "linear", "input": ["h_prev_0", "h_prev_1"]}, "h_new_0": gated}
    swapped = {**two, "h_new_0": {**gated, "input": ["node_0", "h_prev_1", "h_prev_0"]}}
    keys = {json.dumps(SPACE.canonical({"recipe": r})) for r in (PLAIN, sigmoid, two, swapped)}
    assert len(keys) == 4


def test_a_published_recipe_is_counted_as_it_stands() -> None:
    more = {**PLAIN, "unused": {"op": "linear", "input": ["x"]}}
    plain, whole = SPACE.counts({"recipe": PLAIN}), SPACE.counts({"recipe": more})
    sizes = [(400, 600), (600, 600), (600, 400)]
    recurrent = sum(units * (inputs + units + 1) for inputs, units in sizes)
    assert plain.parameters == 33278 * 401 + recurrent
    assert plain.nonembedding == recurrent
    assert plain.flops == 2 * sum(units * (inputs + units) for inputs, units in sizes)
    assert (plain.attention, plain.ffn, plain.depth, plain.width) == (0, 0, 2, 600)
    assert whole.parameters - plain.parameters == sum(units * (inputs + 1) for inputs, units in sizes)
    assert whole.flops == plain.flops


def draws() -> list[Config]:
    rng = np.random.default_rng(0)
    even = [sample(SPACE.choices, rng) for _ in range(60)]
    corners = [corner(SPACE.choices) for corner in (smallest, middle, largest)]
    mutated = [mutate(SPACE.choices, SPACE.canonical(config), rng) for config in even]
    children = [crossover(SPACE.choices, one, other, rng) for one, other in zip(even, mutated, strict=True)]
    return [*even, *corners, *mutated, *children]


def test_every_list_means_a_cell_in_which_all_has_an_effect() -> None:
    for config in draws():
        SPACE.check(config)
        recipe = SPACE.recipe(config)
        check_recipe(recipe)
        assert missing_effects(recipe) == []
        assert len(recipe) <= 24


def test_canonical_is_a_list_that_stays() -> None:
    for config in draws():
        canonical = SPACE.canonical(config)
        assert set(canonical) == set(SPACE.choices)
        assert SPACE.canonical(canonical) == canonical
        assert SPACE.recipe(canonical) == SPACE.recipe(config)


def test_random_cells_repeat_with_the_seed_and_need_no_mending() -> None:
    def drawn(seed: int) -> list[Config]:
        rng = np.random.default_rng(seed)
        return [SPACE.sample(rng) for _ in range(20)]

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)
    sizes = {len(SPACE.recipe(config)) for config in drawn(0)}
    assert max(sizes) >= 6
    assert {SPACE.recipe(config).keys() >= {"h_new_1"} for config in drawn(0)} == {True, False}


def test_networks_repeat_and_have_only_the_rows_asked_for() -> None:
    config = {"recipe": PLAIN}
    one, same, other = (
        SPACE.network(config, generator=torch.Generator().manual_seed(seed), vocabulary=20) for seed in (0, 0, 1)
    )
    assert one.embeddings.weight.shape == (20, 400)
    assert torch.equal(one.embeddings.weight, same.embeddings.weight)
    assert not torch.equal(one.embeddings.weight, other.embeddings.weight)
    assert not one.training
    ids = torch.arange(16).reshape(2, 8)
    assert bool(one(ids, labels=ids).loss.isfinite())
    with pytest.raises(BadInput, match="must be one of lm here, got 'mlm'"):
        SPACE.network(config, generator=torch.Generator(), loss="mlm")


def test_size_counts_all_lists() -> None:
    assert SPACE.size() == {"raw": prod(len(values) for values in SPACE.choices.values())}


FULL: Config = smallest(SPACE.choices)
BAD: dict[str, Any] = {
    "lacks the choice nodes": {name: value for name, value in FULL.items() if name != "nodes"},
    "does not know the choice width": FULL | {"width": 3},
    "op_3 must be one of linear_2 to": FULL | {"op_3": "conv"},
    "input_0_0 must be one of 0 to 3, got 4": FULL | {"input_0_0": 4},
    "states must be one of 1 to 3, got True": FULL | {"states": True},
    "states must be one of 1 to 3, got 'a'": FULL | {"states": "a"},
    "a recipe and nodes; take one": {"recipe": PLAIN, "nodes": 3},
    "has the op 'conv'": {"recipe": {"h_new_0": {"op": "conv", "input": ["x"]}}},
}


@pytest.mark.parametrize(("reason", "config"), BAD.items(), ids=BAD)
def test_what_is_outside_the_space_is_refused(reason: str, config: Config) -> None:
    with pytest.raises(BadInput, match=reason):
        SPACE.check(config)
