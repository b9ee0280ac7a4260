"""The one entry of the room: a network to a folder that proves itself."""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from archwright.errors import BadInput, Failed
from archwright.exporting.card import model_card
from archwright.exporting.folder import CARD, REPORT, whole
from archwright.exporting.formats import FORMATS, Format
from archwright.exporting.parity import Difference, Int8, Latency, Parity, Run, difference
from archwright.exporting.subjects import Subject, subject
from archwright.logs import silence_libraries
from archwright.progress import progress

Batches = Sequence[Mapping[str, Tensor]]


def export(
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    *,
    to: str,
    int8: bool = False,
    reference: Run,
    batches: Batches,
    latency: Latency | None = None,
) -> Parity:
    """The parity report of the checkpoint now in `folder`: the difference to `reference` after loading it from there.

    The network is a pruned one or one of a space. `reference` gives the logits that are wanted: of a sub-network those
    inside its super-network. Above the format's limit this raises
    Failed, and nothing is left in the folder.
    """
    form, of = format_named(to, int8=int8), subject(network)
    check_stock(form, of)
    with silence_libraries(), progress(f"export to {to}", 3, "steps") as bar, whole(folder) as place:
        with readied(network, tokenizer) as ready:
            write(form, ready, tokenizer, place, batches[0])
        bar.advance()
        kind = of.kind
        run = form.load(place, kind)
        limit = max(form.limit, precision(of))
        apart = difference(reference, run, batches, kind=kind)
        check(apart, limit, to, form)
        timed = latency(run) if latency else None
        del run  # its memory is needed for the next
        bar.advance()
        twin = int8_twin(form, place, kind, reference, batches, latency) if int8 else None
        parity = Parity(
            format=to,
            kind=kind,
            family=of.family,
            layers=of.layers,
            pooling=of.pooling,
            limit=limit,
            difference=apart,
            parameters=sum(tensor.numel() for tensor in network.parameters()),
            stored_parameters=form.stored(place / form.weights),
            bytes=weight(place, form.weights),
            files={str(path.relative_to(place)): path.stat().st_size for path in files(place)},
            latency=timed,
            int8=twin,
        )
        describe(parity, form, place, joint=joint(tokenizer))
        bar.advance()
    return parity


@contextmanager
def readied(network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Iterator[PreTrainedModel]:
    """The network in evaluation mode and single precision, with the same tensors if they have it; then as it was."""
    single = all(tensor.dtype == torch.float32 for tensor in network.parameters())
    ready = copy.copy(network) if single else copy.deepcopy(network).float()
    ready.config = copy.deepcopy(network.config)  # saving writes into it
    if getattr(ready.config, "pad_token_id", None) is None:
        ready.config.pad_token_id = tokenizer.pad_token_id  # by which stock decoders find the last token
    modes = [(module, module.training) for module in ready.modules()]
    try:
        yield ready.eval()
    finally:
        for module, training in modes:
            module.training = training


def precision(of: Subject) -> float:
    """The difference of logits that single precision explains, as a share of the largest logit or of 1."""
    return 1e-4 if of.causal else 1e-5


def check_stock(form: Format, of: Subject) -> None:
    """Raises BadInput where a format of stock classes is asked for and there are none with such layers."""
    if form.stock and not of.stock:
        raise BadInput(
            f"this format needs a family that transformers has classes for, got {of.family}, whose embeddings and "
            "layers no stock class has; export to compact."
        )


def format_named(name: str, *, int8: bool) -> Format:
    if name not in FORMATS:
        near = get_close_matches(name, FORMATS, n=1)
        hint = f"did you mean {near[0]}?" if near else "choose one of these."
        raise BadInput(f"the format must be one of {', '.join(FORMATS)}, got {name!r}; {hint}")
    if int8 and FORMATS[name].quantize is None:
        able = ", ".join(other for other, kind in FORMATS.items() if kind.quantize)
        raise BadInput(f"8-bit weights need the format {able}, got {name!r}; leave int8 away or export to {able}.")
    return FORMATS[name]


def write(
    form: Format,
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    place: Path,
    batch: Mapping[str, Tensor],
) -> None:
    try:
        form.write(network, place, batch)
    except SafetensorError as error:
        raise Failed(f"the weights cannot be written to {place.parent.parent}: {error}.") from error
    tokenizer.save_pretrained(place)


def check(apart: Difference, limit: float, to: str, form: Format) -> None:
    if not apart.share <= limit:  # also when it is not a number
        raise Failed(
            f"an export to {to} must keep every logit within {limit:.0e} of the largest logit (or of 1), "
            f"got a difference of {apart.share:.1e}; {form.otherwise}."
        )


def int8_twin(
    form: Format, place: Path, kind: str, reference: Run, batches: Batches, latency: Latency | None
) -> Int8 | None:
    if form.quantize is None:
        return None
    made = form.quantize(place)
    return Int8(
        file=made.weights,
        bytes=weight(place, made.weights),
        difference=difference(reference, made.run, batches, kind=kind),
        latency=latency(made.run) if latency else None,
    )


def weight(place: Path, name: str) -> int:
    """Bytes of a file and of the one with its data, which a very large ONNX network has beside it."""
    return sum(path.stat().st_size for path in place.glob(f"{name}*"))


def files(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if path.is_file())


def joint(tokenizer: PreTrainedTokenizerBase) -> str:
    """What stands between two texts, for a snippet of code: a line break where the tokenizer has no mark for it."""
    marks = tokenizer.num_special_tokens_to_add(pair=True) > tokenizer.num_special_tokens_to_add(pair=False)
    return "" if marks else "\\n"


def describe(parity: Parity, form: Format, place: Path, *, joint: str) -> None:
    """Writes the report and the model card."""
    report = json.dumps(parity.as_json(), indent=2, allow_nan=False, ensure_ascii=False)
    (place / REPORT).write_text(report + "\n", encoding="utf-8")
    (place / CARD).write_text(model_card(parity, form, name=place.name, joint=joint), encoding="utf-8")
