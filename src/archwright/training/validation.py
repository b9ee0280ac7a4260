"""What is wrong with the options of a training, found before anything is read or written."""

from pathlib import Path

from archwright.configs.options import changed_flags, refuse_options
from archwright.configs.training import TrainConfig
from archwright.errors import BadInput
from archwright.store import RunFolder, is_run
from archwright.training.objectives import OBJECTIVES, objective_name
from archwright.training.plan import TrainingObjective, training_recipe

COMMAND = "train"
TEXT_TOO = {"--max-length", "--validation-rows"}
"""Options about a task that objectives on text take as well."""
TEXT_ONLY = {"--layout", "--corpus-validation"}
TEACHER_ONLY = {"--teacher-epochs", "--teacher-learning-rate"}
TASK_TEACHING = {"--layer-weight", "--logit-weight", "--label-weight", "--augment", "--augment-with", "--unlabelled"}
"""Options about a teacher that play a part on a task alone."""
FIXED_BY = {"--model": {"--space", "--variant", "--tokenizer", "--vocabulary"}, "--design": {"--space", "--variant"}}
"""What a network that is named in this way says by itself."""
NETWORKS = {"--config", *FIXED_BY}


def validate(config: TrainConfig) -> None:
    """Refuses what the objective cannot use, and options without effect."""
    options = config.objective
    objective = OBJECTIVES[objective_name(options)]
    training_recipe(config, objective)
    if objective.teacher and options.teacher is None:
        raise BadInput(f"--lesson {objective.name} needs --teacher, for example minilm.")
    if objective.teacher is False and options.teacher is not None:
        raise BadInput(
            f"--lesson {objective.name} learns without a teacher, got --teacher {options.teacher}; leave it out."
        )
    if objective.teacher and config.checks.evaluate_only:
        raise BadInput(
            f"--lesson {objective.name} keeps no way back to its teacher; --evaluate-only needs another lesson."
        )
    if config.student.start == "teacher" and (options.teacher is None or not config.student.built_anew):
        lacking = "--teacher" if options.teacher is None else "--design or --config"
        raise BadInput(f"--start teacher fills a new network from a teacher; give {lacking}, or leave --start out.")
    check_effects(config, objective)
    check_teaching(config, objective)


def check_teaching(config: TrainConfig, objective: TrainingObjective) -> None:
    """Refuses weights and rows that do not go with the teacher."""
    teaching, flags = config.teaching, changed_flags(config.teaching)
    ablating = bool(config.checks.ablate_steps)
    if config.objective.teacher is None or config.checks.evaluate_only:
        without = "with --evaluate-only" if config.checks.evaluate_only else "without --teacher"
        refuse_options(flags, without)
        return
    on_task = objective.head is None
    refuse_options(() if on_task else flags & TASK_TEACHING, "without a lesson on a task")
    refuse_options(flags & {"--mlm-weight"} if on_task else (), "without --lesson distil")
    refuse_options(() if teaching.augment else flags & {"--augment-with"}, "without --augment")
    refuse_options(() if teaching.teacher_cache_gb else flags & {"--teacher-cache"}, "with --teacher-cache-gb 0")
    if on_task and not ablating and teaching.layer_weight == teaching.logit_weight == 0:
        raise BadInput(
            "--layer-weight and --logit-weight must not both be 0; leave out --teacher to learn labels alone."
        )
    if teaching.unlabelled is not None and not teaching.unlabelled.exists():
        raise BadInput(f"--unlabelled must be a file with texts, there is no {str(teaching.unlabelled)!r}.")


def check_effects(config: TrainConfig, objective: TrainingObjective) -> None:
    """Refuses what would have no effect."""
    student, options, checks = (changed_flags(group) for group in (config.student, config.objective, config.checks))
    ablating = bool(config.checks.ablate_steps)
    on_task = objective.head is None or ablating
    task_flags = changed_flags(config.task) - TEXT_TOO | student & {"--pooling"}
    refuse_options(() if on_task else task_flags, "without a lesson on a task")
    refuse_options(options & TEXT_ONLY if objective.head is None else (), "without a lesson on --corpus")
    restarting = changed_flags(config.schedule) & {"--restart-collapsed"}
    refuse_options(() if on_task else restarting, "without a lesson on a task")
    has_teacher = on_task and config.objective.teacher
    refuse_options(() if has_teacher else options & TEACHER_ONLY, "without a --teacher that learns the task first")
    refuse_options(() if ablating else checks & {"--random"}, "without --ablate-steps")
    if len(named := student & NETWORKS) == 1:
        (network,) = named
        refuse_options(student & FIXED_BY.get(network, set()), f"beside {network}")


def check_folder(folder: Path) -> None:
    """Refuses the folder of another command."""
    if is_run(folder) and RunFolder(folder).settings.get("command") != COMMAND:
        raise BadInput(f"--out must be a new folder or one of `archwright train`, {folder} is another command's run.")


def default_folder(config: TrainConfig) -> Path:
    """Named after the network, the objective and the data."""
    student, task = config.student, config.task
    network = student.model or (student.design and student.design.parent.name) or student.space or "network"
    data = config.objective.corpus or task.task or task.train or task.glue or "task"
    parts = (Path(str(network)).name, objective_name(config.objective), Path(str(data)).stem)
    return Path("runs") / "-".join(
        "".join(c if c.isalnum() else "-" for c in part).strip("-").lower() for part in parts
    )
