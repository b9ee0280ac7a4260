"""Tiny networks of every family, without weights from outside."""

import pytest
import torch
from transformers import BertConfig, DistilBertConfig, ElectraConfig, RobertaConfig

from archwright.networks.load import supernet_config
from archwright.networks.pruned import PrunedForSequenceClassification, PrunedNetwork

SIZES = {"vocab_size": 50, "hidden_size": 16, "num_attention_heads": 4, "intermediate_size": 24, "num_hidden_layers": 3}
CONFIGS = {
    "bert": BertConfig(**SIZES, max_position_embeddings=40, pad_token_id=0),
    "roberta": RobertaConfig(**SIZES, max_position_embeddings=42, pad_token_id=1, type_vocab_size=1),
    "electra": ElectraConfig(**SIZES, embedding_size=8, max_position_embeddings=40),
    "distilbert": DistilBertConfig(
        vocab_size=50, dim=16, n_heads=4, hidden_dim=24, n_layers=3, max_position_embeddings=40
    ),
}


def tiny(family: str, labels: tuple[str, ...]) -> PrunedNetwork:
    config = supernet_config(CONFIGS[family], labels=labels, pooling="mean")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = PrunedForSequenceClassification(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    return model


@pytest.fixture(params=sorted(CONFIGS))
def any_family(request: pytest.FixtureRequest) -> PrunedNetwork:
    return tiny(request.param, ("no", "yes"))


@pytest.fixture
def bert() -> PrunedNetwork:
    return tiny("bert", ("low", "middle", "high"))


@pytest.fixture
def regressor() -> PrunedNetwork:
    return tiny("bert", ())
