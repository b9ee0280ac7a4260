"""The bundler: only what is needed, in an order that runs, and never two meanings of a name."""

import ast
import sys
from types import ModuleType

import pytest

from archwright.exporting.bundle import Bundle, bundle_classes, merge_imports, read_module
from archwright.networks.cells.model import CellForCausalLM
from archwright.networks.families import FAMILIES
from archwright.networks.flexibert.network import FlexiBertNetwork
from archwright.networks.load import network_class
from archwright.networks.lts_gpt2 import LtsGpt2ForCausalLM
from archwright.networks.nlu.network import NluModel, NluNetwork
from archwright.networks.pruned import PrunedForQuestionAnswering
from archwright.tasks import TASK_KINDS

EVERY = [NluNetwork, FlexiBertNetwork, LtsGpt2ForCausalLM, CellForCausalLM, *map(network_class, TASK_KINDS)]


@pytest.mark.parametrize("made", EVERY, ids=lambda made: made.__name__)
def test_the_file_runs_alone_and_makes_the_class(made: type, monkeypatch: pytest.MonkeyPatch) -> None:
    text = bundle_classes([made])
    module = ModuleType("alone")
    monkeypatch.setitem(sys.modules, "alone", module)
    exec(compile(text, "alone.py", "exec"), module.__dict__)
    assert vars(module)[made.__name__].__module__ == "alone"
    assert text == bundle_classes([made])


def test_only_what_is_needed_is_in_it() -> None:
    names = {node.name for node in ast.parse(bundle_classes([NluModel])).body if isinstance(node, ast.ClassDef)}
    assert {"NluModel", "NluConfig", "NluEmbeddings", "MobileLayer", "Roles"} <= names
    assert not names & {"NluNetwork", "MaskedTokens", "FlexiBertModel"}


def test_of_a_registry_only_the_members_that_are_named() -> None:
    text = bundle_classes(
        [PrunedForQuestionAnswering], registries={"FAMILIES": {"archwright_nlu": FAMILIES.target("archwright_nlu")}}
    )
    assert 'FAMILIES = {"archwright_nlu": NLU}' in text
    assert text.index("class NluModel") < text.index('FAMILIES = {"archwright_nlu": NLU}')
    assert "BERT = " not in text and "Registry" not in text and "import archwright" not in text


def test_a_name_means_one_thing() -> None:
    bundle = Bundle()
    bundle.claim("Head", "archwright.one")
    bundle.claim("Head", "archwright.one")
    with pytest.raises(ValueError, match="one file can have one 'Head'"):
        bundle.claim("Head", "archwright.two")
    with pytest.raises(ValueError, match="one file can have one 'HEADS'"):
        bundle_classes([NluNetwork, FlexiBertNetwork])


def test_imports_of_one_package_share_a_line() -> None:
    found = merge_imports({"from torch import nn", "import torch", "from torch import Tensor as T", "import math"})
    assert found == ["import math", "import torch", "from torch import Tensor as T, nn"]


def test_what_is_no_module() -> None:
    with pytest.raises(ValueError, match="made of modules"):
        read_module("archwright.nowhere")
