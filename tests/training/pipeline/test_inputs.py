"""A training is bound to what it was begun with: other content under the same path is refused when it goes on."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from archwright.errors import BadInput
from tests.training.pipeline.runs import QUICK, trained
from tests.training.pipeline.test_resume import interrupted


def test_other_text_or_design_is_refused(
    text: Path, encoder: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, design = shutil.copy(text, tmp_path / "text.txt"), shutil.copy(encoder["config"], tmp_path / "design.json")
    words = {**QUICK, **encoder, "steps": 3, "corpus": corpus, "config": design, "lesson": "mlm"}
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        interrupted(patch, at=1)
        with pytest.raises(KeyboardInterrupt):
            trained(out, **words)
    assert set(json.loads((out / "digests.json").read_text())) >= {"rows", "tokenizer", "config", "code"}
    lines = corpus.read_text().splitlines()
    corpus.write_text("\n".join([lines[1], lines[0], *lines[2:]]))  # the same words, so the same tokenizer
    with pytest.raises(BadInput, match=rf"other content of its rows, digest \w+, got \w+ from {corpus}; bring back"):
        trained(out, **words)
    corpus.write_text("\n".join(lines))
    design.write_text(json.dumps({**json.loads(design.read_text()), "hidden": 256}))
    with pytest.raises(BadInput, match="other content of its config"):
        trained(out, **words)
    shutil.copy(encoder["config"], design)
    assert trained(out, **words).metrics["loss"] > 0
    corpus.unlink()
    assert trained(out, **words).metrics["loss"] > 0  # a finished run needs none of them


def test_other_weights_are_refused(
    pretrained: Any, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.torch import load_file, save_file

    start = shutil.copytree(pretrained.folder / "model", tmp_path / "start")
    words = {**QUICK, "steps": 3, "model": str(start), "corpus": text, "lesson": "mlm"}
    with monkeypatch.context() as patch:
        interrupted(patch, at=1)
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path / "run", **words)
    weights = load_file(start / "model.safetensors")
    save_file({name: 2 * value for name, value in weights.items()}, start / "model.safetensors", {"format": "pt"})
    with pytest.raises(BadInput, match="other content of its model"):
        trained(tmp_path / "run", **words)
