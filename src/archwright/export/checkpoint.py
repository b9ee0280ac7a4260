"""The one entry of the room: a network to a folder that proves itself."""

import copy
import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from safetensors import SafetensorError
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from archwright.errors import BadInput, Failed
from archwright.export.card import model_card
from archwright.export.folder import CARD, REPORT, whole
from archwright.export.formats import FORMATS, Format
from archwright.export.parity import Difference, Int8, Latency, Parity, Run, difference
from archwright.export.silence import silenced
from archwright.networks.pruned import PrunedNetwork
from archwright.progress import progress

Batches = Sequence[Mapping[str, Tensor]]


def export(
    network: PrunedNetwork,
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

    `reference` gives the logits of the sub-network inside the super-network. Above the format's limit this raises
    Failed, and nothing is left in the folder.
    """
    kind = format_named(to, int8=int8)
    network = copy.deepcopy(network).float().eval()
    with silenced(), progress(f"export to {to}", 3, "steps") as bar, whole(folder) as place:
        write(kind, network, tokenizer, place, batches[0])
        bar.advance()
        run = kind.load(place)
        apart = difference(reference, run, batches)
        check(apart, kind, to)
        bar.advance()
        twin = int8_twin(kind, place, reference, batches, latency) if int8 else None
        parity = Parity(
            format=to,
            family=network.config.backbone["model_type"],
            layers=network.config.layers,
            pooling=network.config.pooling,
            limit=kind.limit,
            difference=apart,
            parameters=sum(tensor.numel() for tensor in network.parameters()),
            stored_parameters=kind.stored(place / kind.weights),
            bytes=(place / kind.weights).stat().st_size,
            files={str(path.relative_to(place)): path.stat().st_size for path in files(place)},
            latency=latency(run) if latency else None,
            int8=twin,
        )
        describe(parity, kind, place)
        bar.advance()
    return parity


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
    kind: Format,
    network: PrunedNetwork,
    tokenizer: PreTrainedTokenizerBase,
    place: Path,
    batch: Mapping[str, Tensor],
) -> None:
    try:
        kind.write(network, place, batch)
    except SafetensorError as error:
        raise Failed(f"the weights cannot be written to {place.parent.parent}: {error}.") from error
    tokenizer.save_pretrained(place)


def check(apart: Difference, kind: Format, to: str) -> None:
    if not apart.share <= kind.limit:  # also when it is not a number
        raise Failed(
            f"an export to {to} must keep every logit within {kind.limit:.0e} of the largest logit (or of 1), "
            f"got a difference of {apart.share:.1e}; {kind.otherwise}."
        )


def int8_twin(kind: Format, place: Path, reference: Run, batches: Batches, latency: Latency | None) -> Int8 | None:
    if kind.quantize is None:
        return None
    made = kind.quantize(place)
    return Int8(
        file=made.weights,
        bytes=(place / made.weights).stat().st_size,
        difference=difference(reference, made.run, batches),
        latency=latency(made.run) if latency else None,
    )


def files(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if path.is_file())


def describe(parity: Parity, kind: Format, place: Path) -> None:
    """Writes the report and the model card."""
    report = json.dumps(parity.as_json(), indent=2, allow_nan=False, ensure_ascii=False)
    (place / REPORT).write_text(report + "\n", encoding="utf-8")
    (place / CARD).write_text(model_card(parity, kind, name=place.name), encoding="utf-8")
