"""Where public data lies that a command reads by default."""

import os
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
