"""The pipeline of `compress`: one method on one task. Everything goes into the run folder and can be resumed."""

import logging
import os
import shutil
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from archwright.callbacks import tell_end
from archwright.compression.budgets.minutes import search_deadline
from archwright.compression.budgets.targets import TARGETS, target_space
from archwright.compression.budgets.total_size import fit_embeddings
from archwright.compression.checkpoint_size import checkpoint_anatomy
from archwright.compression.context import OLDER, RunContext, from_settings, load_context, teach, to_settings
from archwright.compression.cutting import cut_original
from archwright.compression.digests import check_inputs
from archwright.compression.finetuning import finetune_original
from archwright.compression.kept import keep_inputs
from archwright.compression.methods import METHODS, space_for
from archwright.compression.order import measure_order
from archwright.compression.result import build_result, describe_search
from archwright.compression.run import FinishedRun, load_run
from archwright.compression.search import delete_unused_networks, run_search
from archwright.compression.selection import BANDS, RESCORED
from archwright.compression.space import ERROR
from archwright.compression.studies.fidelity import measure_fidelity
from archwright.compression.validation import usual_values, validate, validate_new_run
from archwright.configs import compress as o
from archwright.configs.compress import CompressConfig
from archwright.configs.options import config_values, make_config
from archwright.configs.yaml_file import write_config
from archwright.devices import deterministic_algorithms, limit_kernel_cache
from archwright.errors import BadInput
from archwright.networks.families import FAMILIES
from archwright.networks.load import stock_config
from archwright.networks.precision import LOW, choose_weights, stored_precisions
from archwright.parallel.launcher import processes_here
from archwright.parallel.ray_cluster import connect
from archwright.progress import record_progress
from archwright.reports.compress.page import render_compress_page
from archwright.search import SAMPLERS
from archwright.spaces.subnetwork import SPACES
from archwright.store import RunFolder, atomic_folder, begin_run, is_run, report_database_loss, write_atomic
from archwright.tasks import TASK_KINDS
from archwright.threads import choose_threads
from archwright.training.distributed import SINGLE_PROCESS, ProcessGroup
from archwright.training.precision import choose_precision
from archwright.training.task_data import TaskData, load_task_data

logger = logging.getLogger(__name__)

CHANGED_DEFAULTS = {"teacher": ("space", "strategy", "order"), "distil_epochs": ("epochs",)}
"""Options of the super-network that had another usual value before there was the option named first."""


def run_compression(
    config: CompressConfig,
    task_data: TaskData | None = None,
    *,
    lender: Path | None = None,
    group: ProcessGroup = SINGLE_PROCESS,
) -> FinishedRun:
    """The finished run, now or from an earlier time; a lender is a run of the same options but for the method.

    Of several processes this is what the first one does; the others do `assist_compression`.
    """
    limit_kernel_cache()
    config = resolve_space(config)
    method = METHODS[config.supernet.method]
    if task_data is None:
        task_data = load_data(config)
        config = fit_space(config, task_data)
        config, task_data = fit_embeddings(config, task_data, config.output.out or default_folder(config, task_data))
    else:
        config = fit_space(config, task_data)
    validate(config, task_data)
    folder = config.output.out or default_folder(config, task_data)
    config, task_data = go_on_with_rows(config, folder, task_data, group.processes)
    settings = to_settings(config)
    processes = max(config.search.workers, processes_here())
    threads = choose_threads(config.output.threads, processes, note=folder / "threads.json")
    if not is_run(folder):
        validate_new_run(config, task_data)
    run = begin_run(folder, settings)
    check_inputs(run, task_data)
    if run.is_complete(settings):
        run.sweep()  # a kill may have come after the last file
        group.agree({"folder": str(run.path.resolve()), "complete": True})
        return tell_finished(load_run(run.path))
    with (
        run.lock(),
        record_progress(run.progress),
        deterministic_algorithms(config.output.deterministic),
        nullcontext() if config.search.ray is None else connect(config.search.ray),  # once for all that use it
    ):
        run.renew(settings)
        run.note_once("threads", {"threads": threads})
        write_config(run.path / "config.yaml", from_settings({**settings, "out": run.path.resolve()}))
        if lender is not None:
            copy_original(run, RunFolder(lender))
        keep_inputs(run, task_data)
        group.agree({"folder": str(run.path.resolve()), "complete": False})
        context = RunContext(run, config, task_data, group)
        start = time.monotonic() - sum(run.seconds.values())
        original = finetune_original(context)
        context = teach(context, original)
        original = cut_original(context, original)
        order = measure_order(context, original) if method.samplers else None
        method.prepare(context, original, order)  # trains the super-network, or lists what to evaluate
        context = replace(context, group=SINGLE_PROCESS)  # what follows the first process does alone
        run.note("ready", {"method": config.supernet.method})
        rescored = BANDS * RESCORED if context.halves else BANDS
        deadline = search_deadline(context, original, start=start, rescored=rescored, trains=method.standalone)
        del original  # the memory is needed; with --start original it has become the super-network
        evaluator = method.build_evaluator(context)
        run.note("about", describe_search(evaluator))
        with report_database_loss():
            with run.phase("search"):
                study = run_search(evaluator, deadline=deadline)
            result = build_result(evaluator, study)
        if config.fidelity.honesty:
            with run.phase("honesty"):
                result["honesty"] = measure_fidelity(evaluator)
        run.note("result", result)
        delete_unused_networks(evaluator, study)
        write_atomic(run.report, render_compress_page(result))
        run.finish(settings)
    group.wait_for_first()
    return tell_finished(load_run(run.path))


def assist_compression(config: CompressConfig, group: ProcessGroup) -> FinishedRun:
    """What every process but the first does: it takes part in the trainings of the run, which the first one leads.

    It reads config, rows and networks from where the first one says and writes nothing; the run folder must be one
    that all processes see.
    """
    limit_kernel_cache()
    begun = group.agree({"folder": "", "complete": False})
    run = RunFolder(Path(str(begun["folder"])), writes=False)
    if not begun["complete"]:
        choose_threads(config.output.threads, processes_here(), note=run.path / "threads.json")
        context = replace(load_context(run, device=config.output.device, taught=False), group=group)
        method = METHODS[context.config.supernet.method]
        with deterministic_algorithms(context.config.output.deterministic):
            original = finetune_original(context)
            context = teach(context, original)
            original = cut_original(context, original)
            order = measure_order(context, original) if method.samplers else None
            if method.trains_together:
                method.prepare(context, original, order)
        del original
        group.wait_for_first()  # until it has searched and measured
    return load_run(run.path)


def tell_finished(run: FinishedRun) -> FinishedRun:
    tell_end(run.result)
    return run


def resolve_space(config: CompressConfig) -> CompressConfig:
    """The config with the method's usual space where none is given, and a sampler that serves it.

    A preset is for all methods: its space gives way to the method's own, its sampler EHVI to random search where there
    are thousands of switches.
    """
    options, preset = config.supernet, o.PRESETS[config.supernet.preset]
    method, space, search = METHODS[options.method], options.space, config.search
    target = TARGETS[search.for_]
    if space == preset.get("space") and (space not in method.spaces or (target.spaces and space not in target.spaces)):
        space = None
    space = space_for(options.method, target_space(search.for_, space, method.spaces, options.method))
    if target.cost is not None and search.objectives == o.DEFAULT_OBJECTIVES:
        search = replace(search, objectives=(ERROR, target.cost))
        logger.warning("--for %s: the search is about --objectives %s", search.for_, ",".join(search.objectives))
    if space == "large" and search.sampler == preset.get("sampler") and not SAMPLERS[search.sampler].packed:
        if method.samplers:
            words = (options.preset, search.sampler)
            logger.warning("--preset %s: %s cannot serve the space large; --sampler random instead", *words)
        search = replace(search, sampler="random")
    return replace(config, supernet=replace(options, space=space), search=search)


def fit_space(config: CompressConfig, task_data: TaskData) -> CompressConfig:
    """The config with a space that the family can be searched in, where the usual one is not.

    Of a layer that is run at every place the same heads and units go everywhere. BadInput where another space was asked
    for, or the method takes other heads and units from every layer.
    """
    options, family = config.supernet, stock_config(task_data.source).model_type
    if not FAMILIES[family].shared_layer or SPACES[str(options.space)].alike:
        return config
    able = [name for name in METHODS[options.method].spaces if SPACES[name].alike]
    because = f"{family} runs one layer at every place, from which the same goes everywhere"
    if not able:
        methods = [name for name, method in METHODS.items() if any(SPACES[space].alike for space in method.spaces)]
        raise BadInput(f"{because}, so --method must be {' or '.join(methods)}, got {options.method}.")
    if options.space != METHODS[options.method].spaces[0]:
        raise BadInput(f"{because}, so --space must be {' or '.join(able)}, got {options.space}.")
    logger.warning("%s: --space %s", because, able[0])
    return replace(config, supernet=replace(options, space=able[0]))


def go_on_as_begun(config: CompressConfig, folder: Path) -> CompressConfig:
    """The config with the usual values of an earlier version where the run in this folder was begun by one."""
    settings, values = RunFolder(folder).settings if is_run(folder) else OLDER, config_values(config)
    older = {name: value for name, value in OLDER.items() if name not in settings}
    if older:  # what was usual then stands in the settings
        usual = {**usual_values(config.supernet), "space": METHODS[config.supernet.method].spaces[0]}
        changed = [name for missing, names in CHANGED_DEFAULTS.items() if missing in older for name in names]
        older |= {name: settings[name] for name in changed if name in settings and values[name] == usual[name]}
    return make_config(CompressConfig, {**values, **older}) if older else config


def go_on_with_rows(
    config: CompressConfig, folder: Path, task_data: TaskData, processes: int = 1
) -> tuple[CompressConfig, TaskData]:
    """The config as `go_on_as_begun`, and the rows as that version split them."""
    begun = go_on_as_begun(config, folder)
    before, after = config_values(config), config_values(begun)
    changed = [f"--{name} {after[name]}" for name in after if after[name] != before[name]]
    if changed:
        logger.warning("%s was begun by an earlier version and goes on as it began: %s", folder, " ".join(changed))
    begun = choose_run_precision(choose_batch_size(begun, folder, task_data, processes), folder, task_data)
    return begun, task_data if begun.data == config.data else load_data(begun)


def choose_batch_size(config: CompressConfig, folder: Path, task_data: TaskData, processes: int = 1) -> CompressConfig:
    """The config with a number of texts per step where none is given: that of the run, or what suits the task.

    Of several processes each reads --batch-size texts of a step. The run is about all of them: it is the same as one
    of a single process with so large a --batch-size, which may go on with it.
    """
    own = config.supernet.batch_size
    if not own and is_run(folder):
        size = RunFolder(folder).settings["batch_size"]
    else:
        size = processes * (own or TASK_KINDS[task_data.task.kind].batch_size)
    if processes > 1:
        words = (processes, size, size // processes)
        logger.warning("%d processes train together: a step has %d rows, about %d of them in each process", *words)
    return replace(config, supernet=replace(config.supernet, batch_size=size))


def choose_run_precision(config: CompressConfig, folder: Path, task_data: TaskData) -> CompressConfig:
    """The config with the precision of trainings where it is left to us: that of the run, or what the device is for.

    Weights in bfloat16 are multiplied in bfloat16 everywhere.
    """
    if config.supernet.precision != "auto":
        return config
    source = task_data.source
    stored = stored_precisions(source)
    if choose_weights(config.model.weights, source, stored) in LOW:
        logger.warning(
            "weights stay in bfloat16, as the checkpoint has its %s numbers; --weights float32 doubles the memory",
            f"{sum(stored.values()):,}",
        )
        return replace(config, supernet=replace(config.supernet, precision="bfloat16"))
    width = checkpoint_anatomy(task_data, config.model).width
    usual = choose_precision(task_data.device, width)
    precision = RunFolder(folder).settings["precision"] if is_run(folder) else usual
    if precision == "bfloat16":
        logger.warning("trainings multiply in bfloat16, which this device is made for; --precision float32 does not")
    return replace(config, supernet=replace(config.supernet, precision=precision))


def load_data(config: CompressConfig) -> TaskData:
    return load_task_data(config.model, config.data, seed=config.output.seed, device=config.output.device)


def default_folder(config: CompressConfig, task_data: TaskData, *more: str) -> Path:
    """runs/MODEL-TASK and method and space, or `more` instead of them."""
    options = config.supernet
    method = () if options.method == o.SupernetOptions.method else (options.method,)
    parts = (Path(config.model.model).name, task_data.task.name, *(more or (*method, str(options.space))))
    return Path("runs") / "-".join(
        "".join(c if c.isalnum() else "-" for c in part).strip("-").lower() for part in parts
    )


def copy_original(run: RunFolder, lender: RunFolder) -> None:
    """Takes over the fine-tuned original and the time it took, instead of training it again."""
    if run.original.exists() or not lender.original.exists():
        return
    run.note("plan", {"original": lender.note("plan")["original"]})
    run.note("seconds", {"original": lender.seconds.get("original", 0.0)})
    with atomic_folder(run.original) as beside:
        shutil.copytree(lender.original, beside, copy_function=os.link, dirs_exist_ok=True)
