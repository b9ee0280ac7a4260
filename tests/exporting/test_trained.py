"""What `train` writes, loaded by transformers alone in a process where the project cannot be imported."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from archwright.exporting.compact import MODELING, save_checkpoint
from archwright.networks.cells.model import CellConfig, CellForCausalLM
from archwright.networks.flexibert.network import FlexiBertNetwork
from archwright.networks.lts_gpt2 import LtsGpt2Config, LtsGpt2ForCausalLM
from archwright.networks.nlu.network import NluNetwork
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec
from archwright.tasks import TASK_KINDS
from tests.designed import DESIGNED, body, designed, padded_batch
from tests.tiny import randomise

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", *(f"word{i}" for i in range(35))]
LSTM_LIKE = {
    "gate": {"op": "linear", "input": ["x", "h_prev_0"]},
    "open": {"op": "activation_sigm", "input": ["gate"]},
    "new": {"op": "linear", "input": ["x", "h_prev_1"]},
    "h_new_1": {"op": "blend", "input": ["open", "new", "h_prev_1"]},
    "h_new_0": {"op": "activation_tanh", "input": ["h_new_1"]},
}


def words(*, pairs: bool = True) -> PreTrainedTokenizerFast:
    made = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": "[MASK]"}
    if pairs:
        special = [("[CLS]", 1), ("[SEP]", 2)]
        made.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=special
        )
        names |= {"cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=24, **names)


def pretrained(name: str, loss: str) -> PreTrainedModel:
    config = type(DESIGNED[name])(**{**DESIGNED[name].to_dict(), "loss": loss})
    return drawn({"nlu": NluNetwork, "flexibert": FlexiBertNetwork}[name](config))


def drawn(network: PreTrainedModel) -> PreTrainedModel:
    randomise(network, 3)
    return network.float().eval()


def task(name: str, kind: str) -> PreTrainedModel:
    """A pruned one, so that the layers are not those of the config of the body."""
    network = designed(name, kind=kind, labels=("no", "yes") if kind == "classification" else ()).float()
    rows = network.config.layers
    return extract(network, tuple(LayerSpec(max(0, heads - 1), units - 1) for heads, units in rows)).eval()


def gpt2() -> PreTrainedModel:
    sizes = {"n_head": [2, 4], "d_inner": [10, 6], "d_model": 16, "d_embed": 16, "n_token": 40, "n_positions": 24}
    return drawn(LtsGpt2ForCausalLM(LtsGpt2Config(**sizes, cutoffs=[20, 30], div_val=2, tie_projs=[False, True, True])))


def cells() -> PreTrainedModel:
    return drawn(CellForCausalLM(CellConfig(LSTM_LIKE, vocab_size=40, embedding_size=8, hidden_size=12)))


MADE: dict[str, tuple[str, str, Callable[[], PreTrainedModel]]] = {
    **{
        f"{name}-{label}": (auto, pipe, partial(make, name, kind))
        for name in ("nlu", "flexibert")
        for label, auto, pipe, make, kind in (
            ("mlm", "AutoModelForMaskedLM", "fill-mask", pretrained, "mlm"),
            ("electra", "AutoModelForPreTraining", "", pretrained, "electra"),
            ("classes", "AutoModelForSequenceClassification", "text-classification", task, "classification"),
            ("number", "AutoModelForSequenceClassification", "text-classification", task, "regression"),
            ("choice", "AutoModelForMultipleChoice", "", task, "choice"),
            ("qa", "AutoModelForQuestionAnswering", "question-answering", task, "qa"),
            ("tags", "AutoModelForTokenClassification", "token-classification", task, "tokens"),
            ("labels", "AutoModelForSequenceClassification", "text-classification", task, "multi-label"),
        )
    },
    "nlu-body": ("AutoModel", "feature-extraction", partial(body, "nlu")),
    "flexibert-body": ("AutoModel", "feature-extraction", partial(body, "flexibert")),
    "gpt2": ("AutoModelForCausalLM", "text-generation", gpt2),
    "cells": ("AutoModelForCausalLM", "text-generation", cells),
}
"""By name: how transformers loads it, the pipeline that runs it if there is one, and the network."""


def inputs_of(name: str) -> dict[str, torch.Tensor]:
    given = padded_batch(texts=4).inputs
    if name.endswith("choice"):
        return {key: value.view(2, 2, -1) for key, value in given.items()}
    if MADE[name][0] == "AutoModelForCausalLM":
        return {key: value for key, value in given.items() if key != "token_type_ids"}
    return given


def answer_of(network: Any, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    with torch.no_grad():
        found = network(**inputs)
    names = ("logits", "start_logits", "last_hidden_state")
    return next(getattr(found, name) for name in names if getattr(found, name, None) is not None)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, torch.Tensor]]:
    root, answers = tmp_path_factory.mktemp("trained"), {}
    for name, (auto, _, make) in MADE.items():
        network = make()
        answers[name] = answer_of(network, inputs_of(name))
        save_checkpoint(network, words(pairs="Causal" not in auto), root / name)
        save_file(inputs_of(name), root / f"{name}.inputs")
    return root, answers


ELSEWHERE = """
import json, sys
from pathlib import Path
sys.modules["archwright"] = None  # any import of it fails
import torch, transformers
from safetensors.torch import load_file, save_file
root, made = Path(sys.argv[1]), json.loads(sys.argv[2])
texts = {"fill-mask": ["word1 [MASK] word2"], "question-answering": [], "text-generation": ["word1 word2"]}
said = {}
for name, (auto, pipe) in made.items():
    model = getattr(transformers, auto).from_pretrained(root / name, trust_remote_code=True).eval()
    with torch.no_grad():
        found = model(**load_file(root / f"{name}.inputs"))
    answer = next(found[key] for key in ("logits", "start_logits", "last_hidden_state") if found.get(key) is not None)
    save_file({"answer": answer.contiguous()}, root / f"{name}.answer")
    if pipe == "question-answering":
        tokenizer = transformers.AutoTokenizer.from_pretrained(root / name, trust_remote_code=True)
        inputs = tokenizer("word1", "word2 word3", return_tensors="pt")
        said[name] = list(model(**inputs).start_logits.shape)
    elif pipe:
        run = transformers.pipeline(pipe, model=str(root / name), trust_remote_code=True)
        more = {"max_new_tokens": 3, "do_sample": False} if pipe == "text-generation" else {}
        said[name] = run(texts.get(pipe, ["word1 word2"])[0], **more)
print("SAID", json.dumps(said, default=float))  # scores of tags are numbers of numpy
"""


@pytest.fixture(scope="module")
def said(saved: tuple[Path, dict[str, torch.Tensor]]) -> dict[str, Any]:
    root, _ = saved
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(root / "cache"), "OMP_NUM_THREADS": "1"}
    made = json.dumps({name: made[:2] for name, made in MADE.items()})
    done = subprocess.run(
        [sys.executable, "-I", "-c", ELSEWHERE, str(root), made], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "not supported" not in done.stderr
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("SAID"))[5:])


@pytest.mark.parametrize("name", MADE)
def test_nothing_is_lost_on_the_way(
    name: str, saved: tuple[Path, dict[str, torch.Tensor]], said: dict[str, Any]
) -> None:
    root, answers = saved
    assert torch.equal(load_file(root / f"{name}.answer")["answer"], answers[name])


def test_pipelines_answer(said: dict[str, Any]) -> None:
    for name in ("nlu", "flexibert"):
        assert {row["token_str"] for row in said[f"{name}-mlm"]} <= set(WORDS)
        assert said[f"{name}-classes"][0]["label"] in ("no", "yes")
        assert said[f"{name}-number"][0]["label"] == "score"
        assert len(said[f"{name}-body"][0]) == 4  # [CLS] word1 word2 [SEP]
        assert said[f"{name}-qa"] == [1, 6]
    for name in ("gpt2", "cells"):
        assert said[name][0]["generated_text"].startswith("word1 word2word")


def test_the_code_is_one_file_without_the_project(saved: tuple[Path, dict[str, torch.Tensor]]) -> None:
    root, _ = saved
    for name in MADE:
        code = (root / name / f"{MODELING}.py").read_text()
        assert "import archwright" not in code
        assert "from archwright" not in code
        assert list((root / name).glob("*.py")) == [root / name / f"{MODELING}.py"]


@pytest.mark.parametrize("make", [gpt2, cells])
def test_generation_continues_with_the_most_likely_word_however_texts_are_padded(
    make: Callable[[], PreTrainedModel],
) -> None:
    network = make()
    ids, mask = torch.tensor([[0, 0, 7, 8], [5, 6, 7, 9]]), torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])
    found = network.generate(input_ids=ids, attention_mask=mask, max_new_tokens=4, do_sample=False, pad_token_id=0)
    for row, text in zip(found, ([7, 8], [5, 6, 7, 9]), strict=True):
        for _ in range(4):
            with torch.no_grad():
                text = [*text, int(network(torch.tensor([text])).logits[0, -1].argmax())]
        assert row.tolist()[-len(text) :] == text


def test_beams_of_cells_find_the_likeliest_of_all_texts() -> None:
    network = cells()
    start = torch.tensor([[7, 8]])
    found = network.generate(start, max_new_tokens=2, num_beams=40, do_sample=False, pad_token_id=0)[0, 2:].tolist()
    with torch.no_grad():
        first = network(start).logits[0, -1].log_softmax(-1)
        texts = torch.cat([start.expand(40, 2), torch.arange(40)[:, None]], 1)
        both = first[:, None] + network(texts).logits[:, -1].log_softmax(-1)
    assert found == [int(both.argmax()) // 40, int(both.argmax()) % 40]


def test_a_stock_network_is_saved_as_it_is(tmp_path: Path) -> None:
    from transformers import AutoModel, BertConfig, BertModel

    sizes = {"vocab_size": 40, "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 8}
    save_checkpoint(BertModel(BertConfig(**sizes, num_hidden_layers=1)), words(), tmp_path / "bert")
    assert not list((tmp_path / "bert").glob("*.py"))
    assert type(AutoModel.from_pretrained(tmp_path / "bert")) is BertModel


def test_every_kind_of_head_is_tried() -> None:
    trained = {made[2].args[1] for made in MADE.values() if getattr(made[2], "func", None) is task}
    taught = {name for name, kind in TASK_KINDS.items() if kind.teach is not None}  # `train` has no targets for them
    assert trained == set(TASK_KINDS) - {"lm"} - taught
