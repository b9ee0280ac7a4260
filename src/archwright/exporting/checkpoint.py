"""The one entry of the room: a network to a folder that proves itself."""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from archwright.errors import BadInput, Failed
from archwright.exporting.card import CardFacts, model_card
from archwright.exporting.exportable import network_traits
from archwright.exporting.folder import CARD, REPORT, write_whole_folder
from archwright.exporting.formats import ExportFormat, find_format
from archwright.exporting.kinds import task_export
from archwright.exporting.parity import Int8Report, Latency, Parity, Run, TestError, compare_outputs
from archwright.logs import silence_libraries
from archwright.networks.precision import LOW, Float32Arithmetic
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
    test_error: TestError | None = None,
    test_rows: int | None = None,
    notes: Sequence[str] = (),
    facts: CardFacts | None = None,
) -> Parity:
    """The parity report of the checkpoint now in `folder`: the difference to `reference` after loading it from there.

    The network is a pruned one or one of a space. `reference` gives the logits that are wanted: of a sub-network those
    inside its super-network. `test_error` is measured only beside an 8-bit twin, of both; `notes` and `facts`
    go into the model card. Above the format's limit this raises Failed, and nothing is left in the folder.
    """
    form, traits = find_format(to, int8=int8), network_traits(network)
    if form.stock and not traits.stock:
        raise BadInput(
            f"this format needs a family that transformers has classes for, got {traits.family}, whose embeddings and "
            "layers no stock class has; export to compact."
        )
    with silence_libraries(), progress(f"export to {to}", 3, "steps") as bar, write_whole_folder(folder) as place:
        with export_mode(network, tokenizer, keeps_bfloat16=form.keeps_bfloat16) as ready:
            try:
                form.write(ready, place, batches[0])
            except SafetensorError as error:
                raise Failed(f"the weights cannot be written to {place.parent.parent}: {error}.") from error
        tokenizer.save_pretrained(place)
        if (write_files := task_export(traits.kind).write_files) is not None:
            write_files(network, place)
        bar.advance()
        run = form.load(place, traits.kind)
        precision = 1e-4 if traits.causal else 1e-5  # what single precision explains
        limit = max(form.limit, precision)
        with exact_arithmetic(network):
            difference = compare_outputs(reference, run, batches, kind=traits.kind)
        if not difference.share <= limit:  # also when it is not a number
            raise Failed(
                f"an export to {to} must keep every logit within {limit:.0e} of the largest logit (or of 1), "
                f"got a difference of {difference.share:.1e}; {form.otherwise}."
            )
        exported_latency = latency(run) if latency else None
        exported_error = test_error(run) if test_error and int8 else None
        del run  # its memory is needed for the next
        bar.advance()
        parity = Parity(
            format=to,
            kind=traits.kind,
            family=traits.family,
            layers=traits.layers,
            pooling=traits.pooling,
            limit=limit,
            difference=difference,
            parameters=sum(tensor.numel() for tensor in network.parameters()),
            stored_parameters=form.count_stored(place / form.weights),
            bytes=weight_bytes(place, form.weights),
            latency=exported_latency,
            int8=write_int8(form, place, network, reference, batches, latency, test_error) if int8 else None,
            weights=str(network.dtype if form.keeps_bfloat16 and network.dtype in LOW else torch.float32)[6:],
            test_error=exported_error,
            test_rows=None if exported_error is None else test_rows,
            notes=tuple(notes),
            files={
                str(path.relative_to(place)): path.stat().st_size for path in sorted(place.rglob("*")) if path.is_file()
            },
        )
        report = json.dumps(parity.as_json(), indent=2, allow_nan=False, ensure_ascii=False)
        (place / REPORT).write_text(report + "\n", encoding="utf-8")
        marks_pairs = tokenizer.num_special_tokens_to_add(pair=True) > tokenizer.num_special_tokens_to_add(pair=False)
        card = model_card(parity, form, name=place.name, joint="" if marks_pairs else "\\n", facts=facts)
        (place / CARD).write_text(card, encoding="utf-8")
        bar.advance()
    return parity


@contextmanager
def export_mode(
    network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, keeps_bfloat16: bool = False
) -> Iterator[PreTrainedModel]:
    """The network in evaluation mode and single precision, with the same tensors if they have it; then as it was.

    With `keeps_bfloat16` that precision does as well.
    """
    written = (torch.float32, torch.bfloat16) if keeps_bfloat16 else (torch.float32,)
    as_it_is = all(tensor.dtype in written for tensor in network.parameters())
    ready = copy.copy(network) if as_it_is else copy.deepcopy(network).float()
    ready.config = copy.deepcopy(network.config)  # saving writes into it
    if getattr(ready.config, "pad_token_id", None) is None:
        ready.config.pad_token_id = tokenizer.pad_token_id  # by which stock decoders find the last token
    modes = [(module, module.training) for module in ready.modules()]
    try:
        yield ready.eval()
    finally:
        for module, training in modes:
            module.training = training


def exact_arithmetic(network: PreTrainedModel) -> AbstractContextManager[Any]:
    """Weights in bfloat16 are compared by what they compute in float32, in which the same limits hold as for others.

    In bfloat16 two ways to write the same sum differ in the third digit, and so would a wrong weight.
    """
    return Float32Arithmetic() if network.dtype in LOW else nullcontext()


def write_int8(
    form: ExportFormat,
    place: Path,
    network: PreTrainedModel,
    reference: Run,
    batches: Batches,
    latency: Latency | None,
    test_error: TestError | None,
) -> Int8Report | None:
    if form.quantize is None:
        return None
    file, run = form.quantize(place)
    with exact_arithmetic(network):
        difference = compare_outputs(reference, run, batches, kind=network_traits(network).kind)
    timing, error = latency(run) if latency else None, test_error(run) if test_error else None
    return Int8Report(file, weight_bytes(place, file), difference, timing, error)


def weight_bytes(place: Path, name: str) -> int:
    """Bytes of a file and of the one with its data, which a very large ONNX network has beside it."""
    return sum(path.stat().st_size for path in place.glob(f"{name}*"))
