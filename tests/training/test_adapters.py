"""A PEFT adapter given as the model: merged where peft is installed, else one line that says how."""

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from archwright.errors import BadInput
from archwright.training import adapters
from archwright.training.adapters import checkpoint_of, head_size


@pytest.fixture
def adapter(tmp_path: Path, bert: Path) -> Path:
    folder = tmp_path / "adapter"
    folder.mkdir()
    config = {"base_model_name_or_path": str(bert), "task_type": "SEQ_CLS", "peft_type": "LORA"}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    weights = {"base_model.model.classifier.weight": np.zeros((3, 48), np.float32)}
    save_file(weights, folder / "adapter_model.safetensors")
    return folder


def test_without_peft_one_line_says_how_to_merge(adapter: Path, bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapters, "find_spec", lambda name: None)
    with pytest.raises(BadInput) as refusal:
        checkpoint_of(str(adapter))
    line = str(refusal.value)
    assert "\n" not in line and f"LORA adapter of {bert}" in line and "pip install 'archwright[peft]'" in line
    assert "peft.AutoPeftModelForSequenceClassification.from_pretrained(" in line and "merge_and_unload()" in line


def test_merged_once_and_again_when_the_adapter_changes(
    adapter: Path, bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a stand-in for peft, which need not be installed: what it is asked, and what becomes of its answer."""
    asked: list[tuple[str, dict[str, Any]]] = []

    def from_pretrained(folder: str, **options: Any) -> Any:
        asked.append((folder, options))
        return SimpleNamespace(merge_and_unload=lambda: SimpleNamespace(save_pretrained=save))

    def save(place: Path) -> None:
        (Path(place) / "config.json").write_text((bert / "config.json").read_text())

    stand_in: Any = ModuleType("peft")
    stand_in.AutoPeftModelForSequenceClassification = SimpleNamespace(from_pretrained=from_pretrained)
    monkeypatch.setitem(sys.modules, "peft", stand_in)
    monkeypatch.setattr(adapters, "find_spec", lambda name: stand_in)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    merged = checkpoint_of(str(adapter))
    assert asked == [(str(adapter), {"num_labels": 3})]
    assert {"config.json", "tokenizer.json"} <= {path.name for path in Path(merged).iterdir()}  # that of the base
    assert checkpoint_of(str(adapter)) == merged and len(asked) == 1
    save_file({"classifier.weight": np.ones((3, 48), np.float32)}, adapter / "adapter_model.safetensors")
    assert checkpoint_of(str(adapter)) != merged and len(asked) == 2


def test_other_models_stay_as_they_are(bert: Path, adapter: Path) -> None:
    assert checkpoint_of(str(bert)) == str(bert) and checkpoint_of("org/model") == "org/model"
    (adapter / "config.json").write_text("{}")  # a whole checkpoint that an adapter lies beside
    assert checkpoint_of(str(adapter)) == str(adapter)


def test_an_adapter_that_says_nothing_is_refused(adapter: Path) -> None:
    (adapter / "adapter_config.json").write_text("{}")
    with pytest.raises(BadInput, match="must name its base model"):
        checkpoint_of(str(adapter))


def test_the_head_tells_the_number_of_labels(adapter: Path) -> None:
    assert head_size(adapter) == {"num_labels": 3}
    save_file({"q.lora_A.weight": np.ones((2, 4), np.float32)}, adapter / "adapter_model.safetensors")
    assert head_size(adapter) == {}
