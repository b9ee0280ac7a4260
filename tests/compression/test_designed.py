"""`compress` from end to end on networks that were designed here: what `train` writes is a model like any other."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, PreTrainedModel

from archwright.compression.studies.preview import preview_spaces
from archwright.errors import BadInput
from archwright.exporting.compact import save_checkpoint
from archwright.networks.flexibert.config import FlexiBertConfig
from archwright.networks.flexibert.network import FlexiBertNetwork
from archwright.networks.load import load_supernet
from archwright.networks.nlu.config import NluConfig
from archwright.networks.nlu.network import NluNetwork
from tests.compression.runs import POSITIONS, compressed

SMALL = {"embedding_size": 12, "max_position_embeddings": POSITIONS}


def nlu(words: int) -> PreTrainedModel:
    layers = [["base", 12], ["mobile", 20]]
    return NluNetwork(NluConfig(layers, hidden_size=24, heads=3, vocab_size=words, loss="mlm", **SMALL))


def flexibert(words: int) -> PreTrainedModel:
    layers = [["SA/WMA", 2, [16]], ["LT/DFT", 2, [8, 8, 12]]]
    return FlexiBertNetwork(FlexiBertConfig(layers, hidden_size=24, vocab_size=words, loss="electra", **SMALL))


DESIGNS = {"nlu": nlu, "flexibert": flexibert}


@pytest.fixture(scope="module")
def trained(place: Path, minilm: Path) -> dict[str, Path]:
    """Two networks as `train` leaves them."""
    tokenizer, found = AutoTokenizer.from_pretrained(minilm), {}
    for name, make in DESIGNS.items():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            save_checkpoint(make(len(tokenizer)), tokenizer, place / f"designed-{name}")
        found[name] = place / f"designed-{name}"
    return found


@pytest.mark.parametrize(("name", "space"), [("nlu", "medium"), ("flexibert", "large")])
def test_a_designed_network_shrinks(
    name: str, space: str, trained: dict[str, Path], rows: Path, tmp_path: Path
) -> None:
    run = compressed(tmp_path / "run", model=str(trained[name]), train=rows, space=space)
    assert run.result["family"] == {"nlu": "archwright_nlu", "flexibert": "archwright_flexibert"}[name]
    assert run.front
    written: dict[str, Any] = run.member(run.front[0]["trial"]).save_pretrained(tmp_path / "small")
    assert written["difference"]["largest"] < 1e-5
    assert written["parameters"] <= run.result["original"]["parameters"]


@pytest.mark.parametrize("name", DESIGNS)
def test_latency_can_be_an_objective(name: str, trained: dict[str, Path], rows: Path, tmp_path: Path) -> None:
    run = compressed(
        tmp_path / "run", model=str(trained[name]), train=rows, objectives=("latency_ms", "nonembedding_parameters")
    )
    assert run.front


@pytest.mark.parametrize("name", DESIGNS)
def test_its_spaces_can_be_looked_at(name: str, trained: dict[str, Path], tmp_path: Path) -> None:
    facts = preview_spaces(str(trained[name]), out=tmp_path, seed=0).as_json()
    assert facts["layers"] == 2
    assert all(0 <= share <= 1 for space in facts["spaces"].values() for share in space["shares"])


def test_a_network_with_our_head_is_no_super_network(trained: dict[str, Path], rows: Path, tmp_path: Path) -> None:
    network = load_supernet(str(trained["nlu"]), labels=("no", "yes"))
    save_checkpoint(network, None, tmp_path / "tuned")
    with pytest.raises(BadInput, match="that it was fine-tuned from"):
        compressed(tmp_path / "run", model=str(tmp_path / "tuned"), train=rows)
    assert not (tmp_path / "run").exists()
