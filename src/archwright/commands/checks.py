"""What is wrong with files and folders, found in a second: before torch is loaded and without it.

The commands check the same again with everything else; here stands only what can be known without a network.
"""

from pathlib import Path

from archwright.compression.run import load_run
from archwright.configs import compress as o
from archwright.data.public_data import EMBEDDED, resolve_model
from archwright.data.tasks.hub import PREFIX
from archwright.data.tasks.labelled import BUILT_IN
from archwright.data.tasks.tables import Columns, FewRows
from archwright.data.tasks.task import DEFAULT_TASK, OTHER_TASKS, TaskRequest, load_labelled, recognise_kind
from archwright.errors import BadInput
from archwright.store import RunFolder, existing_run
from archwright.store.run import INPUTS
from archwright.tasks import TASK_KINDS

MODEL_FILES = ("config.json", "model/config.json", "adapter_config.json", "*.gguf")
"""What a folder with a model has at least one of."""


def check_compress(config: o.CompressConfig) -> None:
    """Model folder, files, columns and labels."""
    check_model(config.model.model if config.preview.preview is None else config.preview.preview)
    if config.preview.preview is None:
        check_rows(config.data, config.output.seed)


def check_model(model: str) -> None:
    """BadInput for a model that is neither a folder with a model nor can be a hub id, which is NAME or OWNER/NAME."""
    rule = f"model must be a folder with config.json and weights or a hub id, got {model!r}"
    folder = Path(resolve_model(model))
    if model in EMBEDDED:
        return
    if folder.is_dir() and not any(True for name in MODEL_FILES for _ in folder.glob(name)):
        raise BadInput(f"{rule}: it has no config.json; write the model there with save_pretrained.")
    is_path = folder.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1 or model.endswith("/")
    if is_path and not folder.is_dir():
        raise BadInput(f"{rule}: there is no such folder.")


def check_rows(data: o.DataOptions, seed: int = 0) -> None:
    """Files that do not exist, and of labelled rows wrong columns, labels and numbers; they are not read twice.

    Of built-in tasks, other kinds of tasks, folders of `datasets` and data of the hub no row is read here.
    """
    files = {"data": data.data, "train": data.train, "validation": data.validation, "test": data.test}
    kind = TASK_KINDS.get(data.task) if data.task else None
    others = data.task in OTHER_TASKS or (kind is not None and kind.load is not None)
    known = not data.train and (data.task or DEFAULT_TASK) in BUILT_IN
    folders = any(path is not None and path.is_dir() for path in (data.train, data.validation, data.test))
    if others or known or folders or (data.task or "").startswith(PREFIX):
        for path in files.values():
            if path is not None and not path.exists():
                raise BadInput(f"there is no file {str(path)!r}; check the path.")
        return
    columns = Columns(
        *(data.text_column, data.text_pair_column, data.label_column),
        *(tuple(data.choice_columns), data.skip_empty, tuple(data.label_columns)),
    )
    request = TaskRequest(
        name=data.task or None,
        **files,
        columns=columns,
        regression=data.regression,
        labels=data.labels or None,
        validation_role=data.validation_role,
        few=FewRows(data.train_rows, seed) if data.train_rows > 0 else None,
    )
    load = recognise_kind(request)
    if load is load_labelled:  # others read their rows when there is a network to read them for
        load(request)


def check_select(config: o.SelectConfig) -> None:
    """The run has a result, and something on its front is within a budget that needs no measuring."""
    run, budget, costs, loss = load_run(config.run.run), config.budget, config.costs, config.loss
    if config.recovery.recover_epochs:
        check_training_inputs(run.folder)
    if all(limit is None for limit in (budget.latency_ms, costs.flops, costs.memory, costs.int8_size)):
        run.select(params=budget.params, total_params=budget.total_params, max_loss=loss.max_loss, surely=loss.surely)


def check_training_inputs(run: RunFolder) -> None:
    """BadInput where data or model of a finished run, which recovery trains with, are not where they were."""
    settings = run.settings
    for name in ("model", "tokenizer", "data", "train", "validation", "test"):
        value = settings.get(name)
        path = Path(str(value))
        if value and path.is_absolute() and not path.exists() and not (run.path / INPUTS / path.name).exists():
            raise BadInput(
                f"--recover-epochs trains with the model and the rows of the run, and its --{name} {path} is gone; "
                "put it back, or leave out --recover-epochs."
            )


def check_worker(config: o.WorkerConfig) -> None:
    existing_run(config.run.run)


def check_export(config: o.ExportConfig) -> None:
    source = config.source.run
    if not source.is_dir():
        raise BadInput(f"{source} is no run of `train` or `compress` and no network: there is no such folder.")
