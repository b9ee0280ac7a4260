"""Hidden states and attentions beside the answer, where they are asked for: of every kind of task, as in stock."""

from pathlib import Path

import pytest
import torch
from transformers import AutoModel
from transformers.dynamic_module_utils import get_class_from_dynamic_module

from archwright.exporting.compact import save_checkpoint
from archwright.networks.pruned import RECORDED
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec
from tests.tiny import BATCHES, STOCK, shared_tiny, tiny

KINDS = {
    **{"classification": "bert", "regression": "roberta", "choice": "distilbert"},
    **{"qa": "electra", "lm": "llama", "embeddings": "gpt2", "tokens": "bert", "multi-label": "electra"},
}
UNEVEN = (LayerSpec(2, 3), LayerSpec(0, 0), LayerSpec(0, 9))
ALL = dict.fromkeys(RECORDED, True)


@pytest.mark.parametrize(("kind", "name"), KINDS.items())
def test_they_are_those_of_the_stock_network(kind: str, name: str) -> None:
    model = tiny(name, kind=kind, labels=() if kind == "regression" else ("a", "b"))
    batch = BATCHES.get(kind, BATCHES["classification"])(name)
    inputs = {key: value for key, value in batch.inputs.items() if key != "context_mask"}
    stock = AutoModel.from_config(STOCK[name], attn_implementation="eager").double().eval()
    state = {key.removeprefix("backbone."): value for key, value in model.state_dict().items()}
    stock.load_state_dict(model.config.family.to_stock(state), strict=False)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        ours = model(**inputs, **ALL)
        theirs = stock(**{key: value.flatten(0, -2) for key, value in inputs.items()}, **ALL)
    assert len(ours.hidden_states) == 4
    assert len(ours.attentions) == 3
    for one, other in zip(
        (*ours.hidden_states, *ours.attentions), (*theirs.hidden_states, *theirs.attentions), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("kind", "name"), KINDS.items())
def test_nothing_is_recorded_unasked(kind: str, name: str) -> None:
    model = shared_tiny(name, None, "classification" if kind == "regression" else kind)
    batch = BATCHES[model.config.kind](name)
    with torch.no_grad():
        answer = model(**batch.inputs)
    assert answer.hidden_states is None
    assert answer.attentions is None


@pytest.mark.parametrize(("kind", "name"), [("classification", "bert"), ("embeddings", "distilbert"), ("lm", "llama")])
def test_a_checkpoint_with_its_own_code_returns_them_for_what_is_left(kind: str, name: str, tmp_path: Path) -> None:
    small = extract(tiny(name, kind=kind).float(), UNEVEN)
    save_checkpoint(small, None, tmp_path / "out")
    batch = BATCHES[kind](name)
    loaded = get_class_from_dynamic_module(f"modeling_archwright.{type(small).__name__}", tmp_path / "out")
    network = loaded.from_pretrained(tmp_path / "out", attn_implementation="eager").eval()
    with torch.no_grad():
        answer, plain = network(**batch.inputs, **ALL), small.eval()(**batch.inputs)
    torch.testing.assert_close(answer.logits, plain.logits, rtol=0, atol=1e-5)
    texts, time = batch.inputs["input_ids"].flatten(0, -2).shape
    assert [state.shape[:2] for state in answer.hidden_states] == [(texts, time)] * 3  # embeddings and two layers
    assert [attention.shape for attention in answer.attentions] == [(texts, 2, time, time)]  # the layer that has heads
    real = batch.inputs["attention_mask"].flatten(0, -2).bool()
    torch.testing.assert_close(answer.attentions[0].sum(-1).transpose(1, 2)[real], torch.ones(int(real.sum()), 2))
