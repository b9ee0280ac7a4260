"""Every kind of task in every format: it loads as such a network, proves itself, and its card tells how to use it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoTokenizer, GenerationConfig

from archwright.errors import BadInput, Failed
from archwright.exporting.checkpoint import export
from archwright.exporting.formats import FORMATS
from archwright.exporting.kinds import task_export
from archwright.exporting.parity import Parity
from archwright.subnet.extract import extract
from archwright.subnet.spec import LayerSpec, SubnetSpec
from archwright.tasks import TASK_KINDS
from tests.exporting.tiny import DECODERS, ENCODERS, batch, batches, inside, supernet, tokenizer

UNEVEN = (LayerSpec(0, 11), LayerSpec((0, 2), (1, 5, 7)), LayerSpec(2, 0))
EVEN = (LayerSpec(4, 9), LayerSpec(0, 0), LayerSpec(4, 9))
FITTING = {to: EVEN if to == "hf" else UNEVEN for to in FORMATS}
"""Sub-networks that every format can hold."""
TORCH_FORMATS = [name for name, form in FORMATS.items() if form.library == "transformers"]
STOCK_FORMATS = ["hf", "hf-padded"]


def exported(folder: Path, to: str, kind: str, family: str, *, keep: SubnetSpec | None = None, **more: Any) -> Parity:
    keep = keep or FITTING[to]
    model = supernet(family, kind=kind)
    values = {"reference": inside(model, keep), "batches": batches(family, kind)} | more
    return export(extract(model, keep), tokenizer(family), folder, to=to, **values)


def exists(kind: str, family: str, to: str) -> bool:
    """Whether there are such networks: encoders write no text, and stock decoders do not choose."""
    return not ((kind == "lm" and family in ENCODERS) or (kind == "choice" and family in DECODERS and "hf" in to))


def snippet(folder: Path) -> str:
    return (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]


CASES = [
    (kind, family, to)
    for kind in TASK_KINDS
    for family in ("bert", "llama")
    for to in FORMATS
    if exists(kind, family, to)
]
QUICK = [case for case in CASES if case[2] != "onnx" or case[:2] in (("choice", "bert"), ("lm", "llama"))]
QUICK = [case for case in QUICK if case[0] != "multi-label" or case[1:] == ("bert", "compact")]
"""The network of several labels is that of one."""


@pytest.mark.parametrize(
    ("kind", "family", "to"),
    [pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow) for case in CASES],
)
def test_it_proves_itself_and_the_snippet_of_its_card_runs(
    kind: str,
    family: str,
    to: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    parity = exported(tmp_path / "out", to, kind, family)
    report = json.loads((tmp_path / "out" / "parity.json").read_text())
    assert report["kind"] == parity.kind == kind
    assert parity.difference.share <= parity.limit == max(FORMATS[to].limit, 1e-5 if family in ENCODERS else 1e-4)
    assert parity.difference.same_predictions == (None if kind in ("regression", "embeddings") else 1)
    assert f"pipeline_tag: {task_export(kind).tag}" in (tmp_path / "out" / "README.md").read_text()
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    exec(snippet(tmp_path / "out"), {})
    printed = capsys.readouterr().out.strip()
    assert printed and "custom code" not in printed  # transformers would ask before it runs any


@pytest.mark.covering
@pytest.mark.parametrize("kind", ["choice", "qa", "tokens"])
@pytest.mark.parametrize("family", ["roberta", "electra", "distilbert", "gpt2", "qwen3", "mistral"])
@pytest.mark.parametrize("to", STOCK_FORMATS)
def test_stock_heads_of_every_family(kind: str, family: str, to: str, tmp_path: Path) -> None:
    if exists(kind, family, to):
        assert exported(tmp_path / "out", to, kind, family).difference.share <= 1e-5
    else:
        with pytest.raises(BadInput, match=f"got {kind} with {family}, for which there is none; export to compact"):
            exported(tmp_path / "out", to, kind, family)


@pytest.mark.covering
@pytest.mark.parametrize("to", TORCH_FORMATS)
@pytest.mark.parametrize("family", [family for family in DECODERS if family != "llama"])
def test_classifying_decoders(family: str, to: str, tmp_path: Path) -> None:
    assert exported(tmp_path / "out", to, "classification", family).difference.share <= 1e-5


def test_stock_decoders_know_the_padding_token_of_the_tokenizer(tmp_path: Path) -> None:
    keep, model = UNEVEN, supernet("llama", kind="classification", pad_token_id=None)
    export(
        extract(model, keep),
        tokenizer("llama"),
        tmp_path / "out",
        to="hf-padded",
        reference=inside(model, keep),
        batches=batches("llama"),
    )
    assert json.loads((tmp_path / "out" / "config.json").read_text())["pad_token_id"] == 0


def test_closed_places_do_not_make_the_limit_wide(tmp_path: Path) -> None:
    """Places outside of the context score -10,000, of which no difference may be a share."""
    parity = exported(tmp_path / "out", "compact", "qa", "bert")
    assert parity.difference.largest_logit < 100
    right = inside(supernet("bert", kind="qa"), UNEVEN)
    with pytest.raises(Failed, match="within 1e-05"):
        exported(tmp_path / "new", "compact", "qa", "bert", reference=lambda inputs: right(inputs) + 0.01)


@pytest.mark.parametrize(("error", "fails"), [(3e-5, False), (1e-2, True)])
def test_the_limit_of_decoders(error: float, fails: bool, tmp_path: Path) -> None:
    right = inside(supernet("gpt2", kind="lm"), UNEVEN)

    def wrong(inputs: Mapping[str, Tensor]) -> Tensor:
        return right(inputs) + error

    if fails:
        with pytest.raises(Failed, match="within 1e-04"):
            exported(tmp_path / "out", "compact", "lm", "gpt2", reference=wrong)
    else:
        assert exported(tmp_path / "out", "compact", "lm", "gpt2", reference=wrong).difference.largest >= 2e-5


def test_shapes_of_choices_are_in_the_report_and_the_card(tmp_path: Path) -> None:
    parity = exported(tmp_path / "out", "compact", "choice", "bert")
    assert [(s["rows"], s["choices"], s["length"]) for s in parity.difference.shapes] == [
        (1, 2, 3),
        (1, 2, 48),
        (8, 2, 21),
        (2, 2, 7),
    ]
    assert "8 x 2 x 21" in (tmp_path / "out" / "README.md").read_text()


def test_padding_of_a_language_model_is_not_compared(tmp_path: Path) -> None:
    right = inside(supernet("llama", kind="lm"), UNEVEN)
    padded = batch("llama", 4, 9)
    assert not padded["attention_mask"].all()

    def elsewhere(inputs: Mapping[str, Tensor]) -> Tensor:
        return right(inputs) + 7 * (1 - inputs["attention_mask"][..., None])

    parity = exported(tmp_path / "out", "compact", "lm", "llama", reference=elsewhere, batches=[padded])
    assert parity.difference.largest < 1e-4


@pytest.mark.parametrize("to", TORCH_FORMATS)
def test_what_a_chat_needs_goes_along(to: str, tmp_path: Path) -> None:
    model, words = supernet("llama", kind="lm"), tokenizer("llama")
    model.generation_config = GenerationConfig(eos_token_id=[2, 3], repetition_penalty=1.25)
    words.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    keep = FITTING[to]
    export(
        extract(model, keep),
        words,
        tmp_path / "out",
        to=to,
        reference=inside(model, keep),
        batches=batches("llama", "lm"),
    )
    kept = GenerationConfig.from_pretrained(tmp_path / "out")
    assert (kept.eos_token_id, kept.repetition_penalty) == ([2, 3], 1.25)
    again = AutoTokenizer.from_pretrained(tmp_path / "out", trust_remote_code=to == "compact")
    assert again.apply_chat_template([{"role": "user", "content": "w9 w8"}], tokenize=False) == "w9 w8"


def test_a_line_break_joins_two_texts_where_the_tokenizer_has_no_mark(tmp_path: Path) -> None:
    exported(tmp_path / "decoder", "compact", "choice", "llama")
    assert r'["\none way on", "\nanother way on"]' in snippet(tmp_path / "decoder")
    exported(tmp_path / "encoder", "compact", "choice", "bert")
    assert '["one way on", "another way on"]' in snippet(tmp_path / "encoder")


def test_memory_is_not_copied_for_writing() -> None:
    from archwright.exporting.checkpoint import export_mode

    network = extract(supernet("llama", kind="lm"), UNEVEN).train()
    with export_mode(network, tokenizer("llama")) as ready:
        assert not any(module.training for module in ready.modules())
        pairs = zip(ready.parameters(), network.parameters(), strict=True)
        assert all(ours.data_ptr() == theirs.data_ptr() for ours, theirs in pairs)
        ready.config.architectures = ["changed"]
    assert all(module.training for module in network.modules())
    assert network.config.architectures != ["changed"]
    with export_mode(network.double(), tokenizer("llama")) as ready:
        assert {tensor.dtype for tensor in ready.parameters()} == {torch.float32}
    assert network.dtype == torch.float64
