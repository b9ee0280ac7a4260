"""A smaller vocabulary for a checkpoint: which of its tokens stay, and a tokenizer that knows only them.

WordPiece takes the longest token that fits, so a text whose tokens all stay is cut as before. Byte pairs are merged by
rank, and no merge crosses the border of a token that comes out in the end: how a token is merged depends on its own
characters only. So whoever keeps a token must keep every token on the way to it, and then texts whose tokens all stay
are cut as before as well. Single characters (or bytes) always stay, so that any text can still be written.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.data.encoding import Encoded
from archwright.data.files import quote
from archwright.data.text.tokenizer import load_tokenizer
from archwright.errors import BadInput

KINDS = ("WordPiece", "BPE")
"""Models of the tokenizers library that can be made smaller."""
BYTE = re.compile(r"<0x[0-9A-F]{2}>")
"""How tokenizers that fall back to bytes write them."""

Document = dict[str, Any]
"""What tokenizer.json says."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The tokens of a checkpoint that stay."""

    kept: NDArray[np.int64]
    """Their ids in the checkpoint, rising; a token's new id is its place here."""
    size: int
    """Tokens of the whole vocabulary."""
    touched: Mapping[str, float] = field(default_factory=dict)
    """Share of the texts of each split in which a removed token stood."""
    note: str = ""
    """What stays beside the tokens of a file."""

    def __len__(self) -> int:
        return len(self.kept)

    def renumber(self, token_id: int) -> int | None:
        """The new id of a token; None where it is gone."""
        place = int(np.searchsorted(self.kept, token_id))
        return place if place < len(self.kept) and self.kept[place] == token_id else None

    def share_touched(self, encoded: Encoded) -> float:
        """Share of the rows, as the whole vocabulary writes them, with a token that is gone."""
        stays = np.zeros(max(self.size, int(encoded.ids.max(initial=0)) + 1), dtype=bool)
        stays[self.kept] = True
        removed = np.concatenate([[0], np.cumsum(~stays[encoded.ids])])
        per_text = np.diff(removed[encoded.offsets])
        return float((per_text.reshape(-1, encoded.choices).sum(axis=1) > 0).mean())


def choose_vocabulary(
    rule: int | Path | None, tokenizer: Any, encoded: Encoded, also: Iterable[int] = ()
) -> Vocabulary:
    """So many of the tokenizer's tokens, by how often they occur in these rows; those of a file; or all that occur.

    `also` are ids that the checkpoint's config names. BadInput for a rule that cannot be followed.
    """
    document = read_document(tokenizer)
    ids = token_ids(document)
    tokens = {token_id: token for token, token_id in ids.items()}
    required = required_tokens(document, tokenizer) | {tokens[token_id] for token_id in also if token_id in tokens}
    needed, note = merge_parts(document), ""
    counts = np.bincount(encoded.ids, minlength=max(tokens) + 1)
    used = [tokens[int(i)] for i in np.argsort(-counts, kind="stable") if counts[i] and int(i) in tokens]
    if rule is None:
        kept = with_parts({*required, *used}, needed)
    elif isinstance(rule, int):
        kept = most_frequent(rule, required, [*used, *ids], needed, len(ids))
    else:
        listed = read_tokens(rule, ids, special_tokens(document, tokenizer))
        kept = with_parts(listed | required, needed)
        if more := len(kept) - len(listed):
            note = (
                f"{more:,} tokens that {rule} does not list stay: single characters, and parts that others are made of"
            )
    return Vocabulary(np.sort([ids[token] for token in kept]), len(ids), note=note)


def read_document(tokenizer: Any) -> Document:
    """What the tokenizer would write to tokenizer.json; BadInput for kinds that cannot be made smaller."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    document: Document = (
        {"model": {"type": type(tokenizer).__name__}} if backend is None else json.loads(backend.to_str())
    )
    model = document["model"]
    kind = model.get("type")
    if kind not in KINDS or (kind == "BPE" and (model["end_of_word_suffix"] or model["continuing_subword_prefix"])):
        raise BadInput(
            f"--vocabulary needs a WordPiece or byte-level BPE tokenizer, got one of the kind {kind}; leave it out."
        )
    return document


def token_ids(document: Document) -> dict[str, int]:
    """Every token with its id, in the order of the ids."""
    ids = {**document["model"]["vocab"], **{token["content"]: token["id"] for token in document["added_tokens"]}}
    return dict(sorted(ids.items(), key=lambda entry: entry[1]))


def special_tokens(document: Document, tokenizer: Any) -> set[str]:
    """Tokens with a meaning of their own, which no vocabulary may lack."""
    ids, model = token_ids(document), document["model"]
    added = {token["content"] for token in document["added_tokens"]}
    return {token for token in (*added, *tokenizer.all_special_tokens, model.get("unk_token")) if token in ids}


def required_tokens(document: Document, tokenizer: Any) -> set[str]:
    """Special tokens, and single characters or bytes, in which every text can be written."""
    model = document["model"]
    prefix = model.get("continuing_subword_prefix") or ""
    single = {token for token in model["vocab"] if len(token.removeprefix(prefix)) == 1 or BYTE.fullmatch(token)}
    return single | special_tokens(document, tokenizer)


def merge_parts(document: Document) -> dict[str, tuple[str, ...]]:
    """Per token of byte pairs the tokens that are merged on the way to it, itself among them; nothing for WordPiece."""
    merges = document["model"].get("merges") or ()
    ranks = {pair: rank for rank, pair in enumerate(map(split_merge, merges))}
    return {token: merge_path(token, ranks) for token in document["model"]["vocab"]} if ranks else {}


def split_merge(merge: str | list[str]) -> tuple[str, str]:
    """Both parts; older files write them in one text."""
    first, second = merge.split(" ") if isinstance(merge, str) else merge
    return first, second


def merge_path(token: str, ranks: Mapping[tuple[str, str], int]) -> tuple[str, ...]:
    """Tokens that appear while the characters of this one are merged by rank; none if that does not lead to it."""
    parts, path = list(token), []
    while len(parts) > 1:
        rank, place = min((ranks.get((a, b), len(ranks)), i) for i, (a, b) in enumerate(pairwise(parts)))
        if rank == len(ranks):
            return ()  # only whole words that are looked up, or no text at all, give it
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
        path.append(parts[place])
    return tuple(path)


def with_parts(tokens: set[str], needed: Mapping[str, tuple[str, ...]]) -> set[str]:
    return tokens.union(*(needed.get(token, ()) for token in tokens))


def most_frequent(
    number: int, required: set[str], ranked: Iterable[str], needed: Mapping[str, tuple[str, ...]], size: int
) -> set[str]:
    """So many tokens: the required ones, then those that come first, each with what it is merged from if that fits."""
    kept = with_parts(required, needed)
    if not len(kept) <= number <= size:
        raise BadInput(
            f"--vocabulary must be {len(kept):,} (special tokens and single characters) to {size:,} (all tokens) "
            f"for this tokenizer, got {number:,}."
        )
    for token in ranked:
        more = {token, *needed.get(token, ())} - kept
        if len(kept) + len(more) <= number:
            kept |= more
        if len(kept) == number:
            break
    return kept


def read_tokens(file: Path, ids: Mapping[str, int], special: set[str]) -> set[str]:
    """The tokens in a file, one per line; BadInput where one is unknown or a special one is missing."""
    try:
        listed = {line for line in file.read_text(encoding="utf-8").split("\n") if line.strip()}
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"--vocabulary must be task, a number of tokens or a file with one token per line, got {quote(str(file))}, "
            f"which cannot be read ({type(error).__name__})."
        ) from error
    if unknown := sorted(listed - ids.keys()):
        raise BadInput(
            f"--vocabulary must list tokens of the checkpoint, got {len(unknown):,} others in {file} such as "
            f"{quote(unknown[0])}; write them as its tokenizer.json does."
        )
    if missing := sorted(special - listed, key=ids.__getitem__):
        raise BadInput(
            f"--vocabulary must keep all special tokens, {file} lacks {len(missing)} such as {quote(missing[0])}; "
            "add them."
        )
    return listed


def prune_tokenizer(tokenizer: Any, vocabulary: Vocabulary) -> Any:
    """The same tokenizer with fewer tokens, as `AutoTokenizer` loads it from the files that it will be saved to."""
    with TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        file, config = Path(folder) / "tokenizer.json", Path(folder) / "tokenizer_config.json"
        document = prune_document(json.loads(file.read_text(encoding="utf-8")), vocabulary)
        file.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
        options = json.loads(config.read_text(encoding="utf-8"))
        options.pop("added_tokens_decoder", None)  # has the old ids; tokenizer.json has the new ones
        config.write_text(json.dumps(options, ensure_ascii=False), encoding="utf-8")
        return load_tokenizer(folder)


def prune_document(document: Document, vocabulary: Vocabulary) -> Document:
    """tokenizer.json with the kept tokens under their new ids."""
    ids = token_ids(document)
    tokens = {old: token for token, old in ids.items()}
    new = {tokens[int(old)]: place for place, old in enumerate(vocabulary.kept)}
    model = dict(document["model"])
    model["vocab"] = {token: place for token, place in new.items() if token in model["vocab"]}
    if "merges" in model:
        pairs = map(split_merge, model["merges"])
        model["merges"] = [[a, b] for a, b in pairs if a in new and b in new and a + b in new]
    added = [{**token, "id": new[token["content"]]} for token in document["added_tokens"]]
    padding = document.get("padding")
    return {
        **document,
        "model": model,
        "added_tokens": added,
        "post_processor": renumber_processor(document.get("post_processor"), new),
        "padding": padding and {**padding, "pad_id": new[padding["pad_token"]]},
    }


def renumber_processor(processor: Document | None, new: Mapping[str, int]) -> Document | None:
    """What puts special tokens around a text, with their new ids."""
    if processor is None:
        return None
    changed = dict(processor)
    if "processors" in changed:
        changed["processors"] = [renumber_processor(each, new) for each in changed["processors"]]
    for name in ("cls", "sep"):
        if isinstance(changed.get(name), list):  # a token and its id
            changed[name] = [changed[name][0], new[changed[name][0]]]
    if isinstance(changed.get("special_tokens"), dict):
        changed["special_tokens"] = {
            name: {**entry, "ids": [new[token] for token in entry["tokens"]]}
            for name, entry in changed["special_tokens"].items()
        }
    return changed
