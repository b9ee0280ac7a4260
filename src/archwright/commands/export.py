"""`archwright export`: a sub-network of a run as an ordinary checkpoint or ONNX, with a parity report."""

from pathlib import Path
from typing import TYPE_CHECKING

from archwright.compression.export import ExportResult, check_run, export_subnet
from archwright.compression.run import open_finished
from archwright.compression.trained_export import export_trained
from archwright.configs import compress as o
from archwright.errors import BadInput
from archwright.exporting.formats import FORMATS
from archwright.training.students import MODEL

if TYPE_CHECKING:
    pass

DESIGN = "design.json"


def export(config: o.ExportConfig) -> ExportResult:
    """Writes one network of the run, or the network that was trained, and proves it."""
    run, which, export, target = config.source, config.network, config.export, config.target
    if export.to is None:
        raise BadInput(f"--to is needed: one of {', '.join(FORMATS)}.")
    model = model_in(run.run)
    check_which(which, trained=model is not None)
    if model is not None:
        place = target.out or model.with_name(f"{model.name}-{export.to}")
        return ExportResult(
            place, export_trained(model, export.to, folder=place, int8=export.int8, against=which.against)
        )
    if which.trial is None:
        raise BadInput(
            f"--trial is needed for {run.run}, a run of compress: a number of its front, -1 is the original."
        )
    found = open_finished(run.run)
    return export_subnet(
        found.folder, which.trial, export.to, folder=target.out, int8=export.int8, recovered=which.recovered
    )


def check_which(which: o.NetworkOptions, *, trained: bool) -> None:
    """Refuses what only the other kind of folder has an answer to."""
    if trained and (which.trial is not None or which.recovered):
        raise BadInput("--trial and --recovered choose among networks of compress; this folder has one.")
    if not trained and which.against is not None:
        raise BadInput("--against is for trained networks; those of compress are timed against their original.")


def model_in(folder: Path) -> Path | None:
    """The folder of the trained network in a folder: itself or the one that `train` makes; None: it has none."""
    found = next((place for place in (folder, folder / MODEL) if (place / "config.json").is_file()), None)
    if found is None and (folder.name == DESIGN or (folder / DESIGN).is_file()):
        raise BadInput(f"{folder} has a design and no weights; train it first: archwright train --design.")
    if found is None and any(folder.glob("*.safetensors")):
        raise BadInput(f"{folder} has weights and no config.json: it was not written to its end; write it again.")
    if found is None:
        check_run(folder)
    return found
