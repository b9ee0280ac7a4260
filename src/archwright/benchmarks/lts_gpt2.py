"""lts-gpt2: GPT-2-like architectures, trained on WikiText-103 and LM1B by the authors of LiteTransformerSearch.

Layout: random_GPT2_wt103/config_*/j*/model_config.yaml, and params_summary.yaml and ppl_summary.yaml beside config_*;
random_GPT2_lm1b (variant lm1b) is laid out alike. Vocabulary, cutoffs and positions are what the files say.
Summaries that cannot be read stop everything; what is wrong with one architecture makes that row missing.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from archwright.benchmarks.benchmark import Benchmark, BenchmarkTable, Missing, Row, Unusable
from archwright.errors import BadInput
from archwright.search import Config
from archwright.spaces.lts_gpt2 import LtsGpt2Space, from_lists

ORIGIN = "https://github.com/microsoft/archai/tree/neurips-lts/archai/nlp/nas/saved_logs"
LICENCE = "MIT"
INNERS = {"trained": "random_GPT2_wt103", "lm1b": "random_GPT2_lm1b"}
INNER = INNERS["trained"]
PARAMETERS, PERPLEXITIES, MODEL = "params_summary.yaml", "ppl_summary.yaml", "model_config.yaml"
TARGETS = ("test_ppl", "valid_ppl")
COUNTS = ("AdaEmb", "Attn", "FFN", "nonembedding", "total")
FIXED: Mapping[str, Any] = {
    "adaptive": True,
    "d_head": -1,
    "tie_weight": True,
    "tie_projs": [False, True, True, True],
    "primer_conv": False,
    "primer_square": False,
}
"""What shapes a network and is the same in all published architectures: others are none of the space."""
DEPTHS = (range(2, 7), range(7, 12), range(12, 17))
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_lts_gpt2(folder: Path, variant: str = "trained") -> BenchmarkTable:
    """Perplexities with their sign changed; `folder` is random_GPT2_wt103, its sibling, or the folder around them."""
    inner = folder / INNERS[variant]
    root = inner if inner.is_dir() else folder
    parameters, perplexities = read_summary(root / PARAMETERS), read_summary(root / PERPLEXITIES)
    read, rows, missing = [], [], []
    for name, path in sorted(models(root, perplexities).items(), key=lambda item: numbers(item[0])):
        try:
            model = read_model(path)
            read.append((name, path, model, space_of(model, path)))
        except Unusable as why:
            missing.append(Missing(name, str(why)))
    space = Counter(own for *_, own in read).most_common(1)[0][0] if read else LtsGpt2Space(variant="benchmark")
    for name, path, model, own in read:
        try:
            if own != space:
                raise Unusable(f"{path}: its vocabulary, cutoffs or tgt_len are not those of the other architectures")
            config = read_config(model, path, space)
            rows.append(read_row(name, config, entry(perplexities, name, PERPLEXITIES), parameters.get(name)))
        except Unusable as why:
            missing.append(Missing(name, str(why)))
    if not rows:
        why_none = f" ({missing[0].reason})" if missing else ""
        raise BadInput(
            f"{root} must hold config_*/j*/{MODEL}, got no usable one{why_none}; download them from {ORIGIN}."
        )
    return BenchmarkTable("lts-gpt2", variant, space, tuple(rows), tuple(missing), TARGETS[0], TARGETS, licence=LICENCE)


def read_summary(path: Path) -> dict[str, Any]:
    """Entries by name of the architecture."""
    if not path.is_file():
        raise BadInput(f"{path} must be a file of the benchmark, got none; download the folder {INNER} from {ORIGIN}.")
    try:
        entries = read_yaml(path)
    except Unusable as why:
        raise BadInput(f"{why}; download it anew from {ORIGIN}.") from why
    if not isinstance(entries, dict) or not entries:
        raise BadInput(f"{path} must map names of architectures to entries, got {type(entries).__name__}.")
    return {str(name): value for name, value in entries.items()}


def read_yaml(path: Path) -> Any:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)
    except (yaml.YAMLError, ValueError, OSError) as error:
        raise Unusable(f"{path} must be readable YAML: {' '.join(str(error).split())[:200]}") from error


def models(root: Path, perplexities: Mapping[str, Any]) -> dict[str, Path]:
    """Files by name of the architecture, also of those that only the summary names."""
    named = {name: root.joinpath(*name.rsplit("_", 1)) / MODEL for name in perplexities}
    return named | {f"{path.parts[-3]}_{path.parts[-2]}": path for path in root.glob(f"config_*/j*/{MODEL}")}


def numbers(name: str) -> tuple[list[int], str]:
    return [int(digits) for digits in re.findall(r"\d+", name)], name


def read_row(name: str, config: Config, perplexities: Any, counts: Any) -> Row:
    return Row(
        id=name,
        config=config,
        trained={target: -positive(perplexities, target, PERPLEXITIES) for target in TARGETS},
        published={} if counts is None else {count: positive(counts, count, PARAMETERS) for count in COUNTS},
        cell=cell(config),
    )


def read_model(path: Path) -> dict[str, Any]:
    model = read_yaml(path) if path.is_file() else None
    if not isinstance(model, dict):
        raise Unusable(f"{path} must be a file with the keys of an architecture")
    for key, value in FIXED.items():
        if model.get(key, value) != value:
            raise Unusable(f"{path}: {key} must be {value}, got {model[key]!r}")
    return model


def space_of(model: Mapping[str, Any], path: Path) -> LtsGpt2Space:
    """The space with the vocabulary that this architecture was trained with."""
    usual = LtsGpt2Space(variant="benchmark")
    words, positions = model.get("n_token", usual.words), model.get("tgt_len", usual.positions)
    cutoffs = model.get("cutoffs", [*usual.cutoffs, words])
    for name, value in (("n_token", words), ("tgt_len", positions)):
        if not is_count(value):
            raise Unusable(f"{path}: {name} must be a whole number from 1, got {value!r}")
    inner = cutoffs[:-1] if isinstance(cutoffs, list) and cutoffs and cutoffs[-1] == words else cutoffs
    if not isinstance(inner, list) or not all(map(is_count, inner)) or inner != sorted(set(inner)):
        raise Unusable(f"{path}: cutoffs must be rising whole numbers, then n_token ({words}), got {cutoffs!r}")
    return LtsGpt2Space(variant="benchmark", words=words, cutoffs=tuple(inner), positions=positions)


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def read_config(model: Mapping[str, Any], path: Path, space: LtsGpt2Space) -> Config:
    try:
        config = from_lists(model)
        space.check(config)
    except KeyError as error:
        raise Unusable(f"{path} has no {error.args[0]}") from error
    except (TypeError, BadInput) as error:
        raise Unusable(f"{path}: {error}") from error
    return space.canonical(config)


def entry(entries: Mapping[str, Any], name: str, file: str) -> Any:
    if name not in entries:
        raise Unusable(f"{file} has no entry {name}")
    return entries[name]


def positive(entries: Any, key: str, file: str) -> float:
    value = entries.get(key) if isinstance(entries, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise Unusable(f"{key} in {file} must be a positive number, got {value!r}")
    return float(value)


def cell(config: Config) -> str:
    """Thirds of the depth by width: exact (depth, width) cells would have two rows each, these have about ten."""
    layers = next(depths for depths in DEPTHS if config["n_layer"] in depths)
    return f"{layers[0]}-{layers[-1]} layers, {config['d_model']} wide"


LTS_GPT2 = Benchmark(
    "lts-gpt2",
    load_lts_gpt2,
    folder="lts-gpt2",
    origin="https://github.com/microsoft/archai/tree/neurips-lts",
    licence=LICENCE,
    variants=tuple(INNERS),
)
