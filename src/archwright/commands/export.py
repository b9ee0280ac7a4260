"""`archwright export`: a sub-network of a run as an ordinary checkpoint or ONNX, with a parity report."""

from pathlib import Path

from archwright.compression.export import ORIGINAL, ExportResult, export_subnet, export_trained_network
from archwright.compression.methods import load_evaluator
from archwright.compression.run import load_run
from archwright.configs import compress as o
from archwright.errors import BadInput
from archwright.exporting.formats import FORMATS
from archwright.store import RunFolder, is_run
from archwright.training.students import MODEL
from archwright.training.validation import COMMAND

DESIGN = "design.json"


def export(config: o.ExportConfig) -> ExportResult:
    """Writes one network of the run, or the network that was trained, and proves it."""
    source, network, to, int8 = config.source.run, config.network, config.export.to, config.export.int8
    if to is None:
        raise BadInput(f"--to is needed: one of {', '.join(FORMATS)}.")
    model = find_model(source)
    if model is not None:
        if network.trial is not None or network.recovered:
            raise BadInput("--trial and --recovered choose among networks of compress; this folder has one.")
        folder = config.target.out or model.with_name(f"{model.name}-{to}")
        return export_trained_network(model, to=to, folder=folder, int8=int8, against=network.against)
    if network.against is not None:
        raise BadInput("--against is for trained networks; those of compress are timed against their original.")
    if network.trial is None:
        raise BadInput(f"--trial is needed for {source}, a run of compress: a number of its front, -1 is the original.")
    run, trial, recovered = load_run(source), network.trial, network.recovered
    evaluator = load_evaluator(run.folder, training=False)  # a damaged folder is noticed before a wrong trial
    subnet = None if recovered or trial == ORIGINAL else run.member(trial).config
    return export_subnet(evaluator, trial, subnet, to=to, folder=config.target.out, int8=int8, recovered=recovered)


def find_model(folder: Path) -> Path | None:
    """The folder of the trained network in a folder: itself or the one that `train` makes; None: a run of compress."""
    for path in (folder, folder / MODEL):
        if (path / "config.json").is_file():
            return path
    if folder.name == DESIGN or (folder / DESIGN).is_file():
        raise BadInput(f"{folder} has a design and no weights; train it first: archwright train --design.")
    if not is_run(folder):
        if any(folder.glob("*.safetensors")):
            raise BadInput(f"{folder} has weights and no config.json: it was not written to its end; write it again.")
        raise BadInput(f"{folder} is no run of `train` or `compress` and no network: no run.json, no config.json.")
    if RunFolder(folder).settings.get("command") == COMMAND:
        raise BadInput(f"{folder} has no network: its training is not at its end, or one folder further down.")
    return None
