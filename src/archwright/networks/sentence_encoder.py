"""How a sentence encoder makes vectors of texts: what the files of sentence-transformers beside its weights say."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers.utils import cached_file

from archwright.errors import BadInput
from archwright.logs import quiet_libraries

MODULES = ("Transformer", "Pooling", "Normalize")
"""What a sentence encoder may consist of, in this order; the last may be missing."""
POOLING_MODES = {"cls": "cls", "mean": "mean", "max": "max", "last": "lasttoken"}
"""Our names, and those of sentence-transformers."""
POOLING_KEYS = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "last": "pooling_mode_lasttoken",
}
"""The same as keys of `1_Pooling/config.json`, which all versions of sentence-transformers read."""
OTHER_KEYS = ("pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens")
KEPT = ("prompts", "default_prompt_name", "similarity_fn_name")
"""Values of `config_sentence_transformers.json` that an export hands on."""


@dataclass(frozen=True)
class SentenceEncoder:
    """What comes after the last layer of a sentence encoder, and how long its texts may be."""

    pooling: str
    """One of POOLING_MODES."""
    normalize: bool = False
    """Whether vectors have length 1."""
    max_seq_length: int | None = None
    """Tokens of the longest text; longer ones are cut."""
    more: dict[str, Any] = field(default_factory=dict)
    """Of KEPT what the checkpoint says."""

    @property
    def config(self) -> dict[str, Any]:
        """As the config of a network of ours keeps it, beside its pooling."""
        return {"normalize": self.normalize, "max_seq_length": self.max_seq_length, **self.more}


def read_sentence_encoder(source: str, pooling: str | None, usual: str) -> SentenceEncoder:
    """What the checkpoint in a folder or on the hub says; `pooling` is what a user asks for instead.

    Without such files it is the mean of the tokens, as sentence-transformers takes it, or for a decoder the last token
    (`usual`, the pooling of its family), and not normalised.
    """
    modules = read_modules(source)
    if modules is None:
        return SentenceEncoder(pooling or ("last" if usual == "last" else "mean"))
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    if kinds[:2] != [*MODULES[:2]] or kinds[2:] not in ([], ["Normalize"]):
        raise BadInput(
            f"a sentence encoder must be {', '.join(MODULES[:2])} and perhaps {MODULES[2]}, got {', '.join(kinds)} in "
            f"{source!r}; choose another checkpoint."
        )
    lengths = read_json(source, "sentence_bert_config.json") or {}
    if lengths.get("do_lower_case"):
        raise BadInput(
            f"{source!r} says do_lower_case in sentence_bert_config.json, which is not applied here; set it to false "
            "and write the texts in lower case."
        )
    described = read_json(source, f"{modules[1].get('path', '1_Pooling')}/config.json") or {}
    known = read_json(source, "config_sentence_transformers.json") or {}
    return SentenceEncoder(
        pooling=pooling or described_mode(described, source),
        normalize="Normalize" in kinds,
        max_seq_length=lengths.get("max_seq_length"),
        more={name: known[name] for name in KEPT if known.get(name)},
    )


def described_mode(described: dict[str, Any], source: str) -> str:
    """The pooling that a file says, in the words of now (one mode) or of before (a switch per mode)."""
    ours = {theirs: name for name, theirs in POOLING_MODES.items()}
    modes = described.get("pooling_mode")
    if modes is None:
        switches = {**{key: name for name, key in POOLING_KEYS.items()}, **{key: key for key in OTHER_KEYS}}
        modes = [POOLING_MODES.get(name, name) for key, name in switches.items() if described.get(key)] or "mean"
    modes = [modes] if isinstance(modes, str) else list(modes)
    if len(modes) != 1 or modes[0] not in ours:
        raise BadInput(
            f"the pooling of a sentence encoder must be one of {', '.join(POOLING_MODES.values())}, got "
            f"{', '.join(map(str, modes))} in {source!r}; choose another checkpoint, or say --pooling."
        )
    return ours[modes[0]]


def read_modules(source: str) -> list[dict[str, Any]] | None:
    modules = read_json(source, "modules.json")
    if modules is None:
        return None
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise BadInput(f"modules.json of {source!r} must be a list of modules; download it again.")
    return modules


@quiet_libraries()
def read_json(source: str, name: str) -> Any:
    """The content of a file beside the weights, in a folder or on the hub; None if there is none."""
    found = cached_file(
        source,
        name,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    if found is None:
        return None
    try:
        return json.loads(Path(found).read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(f"{found} must be JSON ({error}); download it again.") from error


def write_sentence_encoder(folder: Path, *, pooling: str, width: int, sentence: dict[str, Any]) -> None:
    """The files by which sentence-transformers knows what to do with the network in this folder.

    `sentence` is what `SentenceEncoder.config` says.
    """
    kinds = MODULES if sentence.get("normalize") else MODULES[:2]
    paths = ["" if place == 0 else f"{place}_{kind}" for place, kind in enumerate(kinds)]
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (path, kind) in enumerate(zip(paths, kinds, strict=True))
    ]
    switches = {key: name == pooling for name, key in POOLING_KEYS.items()} | dict.fromkeys(OTHER_KEYS, False)
    write_json(folder / "modules.json", modules)
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": width, **switches})
    if sentence.get("normalize"):
        write_json(folder / "2_Normalize" / "config.json", {})
    lengths = {"max_seq_length": sentence.get("max_seq_length"), "do_lower_case": False}
    write_json(folder / "sentence_bert_config.json", lengths)
    kept = {name: sentence[name] for name in KEPT if sentence.get(name)}
    write_json(folder / "config_sentence_transformers.json", {"prompts": {}, "similarity_fn_name": "cosine", **kept})


def write_json(file: Path, content: Any) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
