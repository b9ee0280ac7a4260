"""Options of `train`."""

from dataclasses import dataclass, field
from pathlib import Path

from archwright.configs import compress as o
from archwright.configs.options import members, option

STARTS = {
    "random": "as a new network",
    "teacher": "from the --teacher: token table, heads and units cut from its own, the rest by least squares",
}
REPLACEMENTS = {
    "auto": "the teacher fills in masked words where its checkpoint has a head for that, else neighbours",
    "masked-words": "the teacher fills in masked words",
    "neighbours": "the nearest words in the teacher's token table",
}
LAYOUTS = {
    "packed": "lines one after another in rows of exactly --max-length tokens, no padding",
    "lines": "one line per row, rows of near-equal length together",
}


@dataclass(frozen=True)
class StudentOptions:
    """What to train."""

    design: Path | None = None
    """A file that `archwright design` wrote: its architecture, untrained."""
    scaled_up: bool = False
    """Of that file the larger architecture, which `design --scale-up` added."""
    space: str | None = option(None, choices=members("spaces", "ARCHITECTURES"))
    """Space of --config instead."""
    variant: str | None = option(None, metavar="NAME")
    """How a config becomes a network, where the space knows several ways."""
    config: Path | None = None
    """File with one config of --space as JSON."""
    model: str | None = None
    """Go on from trained weights instead: a folder that `train` wrote, a folder or hub id of a Hugging Face checkpoint,
    or minilm."""
    start: str = option("random", choices=STARTS)
    """First weights of a network that is built anew."""
    pooling: str | None = option(None, choices=("cls", "mean", "last"))
    """How the head of a task reads the text; by default as the checkpoint was trained."""
    tokenizer: str | None = None
    """Of a network that is built anew: a folder or hub id, also of GPT-2's encoder.json and vocab.bpe; words or bpe
    make one of the corpus. By default the teacher's, else bert-base-uncased's, GPT-2's or words, as the space reads."""
    vocabulary: int | None = None
    """Most tokens of a tokenizer that is made of the corpus; all words, or 16,384 byte pairs."""

    @property
    def built_anew(self) -> bool:
        """Whether the network has no trained weights yet."""
        return self.design is not None or self.config is not None


@dataclass(frozen=True)
class ObjectiveOptions:
    """How to teach it."""

    lesson: str | None = option(None, choices=members("training.objectives", "OBJECTIVES"))
    """What to learn; finetune where no --corpus is given."""
    preset: str = option("default", choices=members("training.recipes", "PRESETS"))
    """Hyperparameters that go together; options below win over it."""
    corpus: Path | None = None
    """Text file to pre-train on, one text per line."""
    corpus_validation: Path | None = None
    """Text file for the validation loss; the last 5 % of the lines of --corpus by default."""
    layout: str = option("packed", choices=LAYOUTS)
    """How the corpus becomes rows."""
    teacher: str | None = None
    """Folder or hub id of a Hugging Face encoder with the same tokenizer, or minilm; finetune trains it on the task
    first, unless its labels, or a head of the kind where there are none, say that it was."""
    teacher_epochs: float = option(3.0, above=0)
    """Passes over the task's rows for that."""
    teacher_learning_rate: float = option(5e-5, above=0, below=1)
    """Peak learning rate of that."""


@dataclass(frozen=True)
class TeachingOptions:
    """What is learnt from --teacher, and on which rows."""

    layer_weight: float = option(1.0, minimum=0)
    """Weight of the teacher's states in fine-tuning; 0: they play no part, and a step is cheaper."""
    logit_weight: float = option(1.0, minimum=0)
    """Weight of the teacher's answers in fine-tuning."""
    label_weight: float = option(0.0, minimum=0)
    """Weight of the labels beside them; the paper learns from the teacher alone."""
    mlm_weight: float = option(0.0, minimum=0)
    """Weight of guessing hidden tokens beside the layers on text (--lesson distil); the paper has none."""
    augment: int = option(0, minimum=0)
    """Copies of every training row with some words exchanged, which the teacher answers."""
    augment_with: str = option("auto", choices=REPLACEMENTS)
    """Where other words come from."""
    unlabelled: Path | None = None
    """Further rows of the task without labels, which the teacher answers: a text per line (.txt), or a table with the
    columns of the texts."""
    teacher_cache: Path | None = None
    """Folder for the teacher's states and answers, which other runs with the same teacher and rows may share; by
    default in the run folder, until the training has ended."""
    teacher_cache_gb: float = option(4.0, minimum=0, way_out="0 keeps none")
    """Most gigabytes for them; rows for which there is no room are answered anew in every epoch. 0: all are."""


@dataclass(frozen=True)
class ScheduleOptions:
    """How long and how fast; by default as the preset says."""

    steps: int | None = option(None, minimum=1)
    """Optimizer updates."""
    epochs: float | None = option(None, above=0)
    """Passes over the data instead."""
    minutes: float | None = option(None, above=0)
    """Wall-clock for all of it, at most 30 % of it for a teacher that learns the task first; fewer steps are planned
    when those asked for would take longer, and a line says how long they will take."""
    batch_size: int | None = option(None, minimum=1)
    """Rows per batch and process."""
    accumulate: int = option(1, minimum=1)
    """Batches per update."""
    learning_rate: float | None = option(None, above=0, below=1)
    """Peak learning rate."""
    warmup: float | None = option(None, minimum=0, below=1)
    """Share of the steps with rising learning rate, 0 to 1."""
    weight_decay: float | None = option(None, minimum=0, below=1)
    """Pulls matrices towards zero."""
    layer_decay: float | None = option(None, above=0, maximum=1)
    """Factor of the learning rate from one layer down to the next."""
    precision: str = option("auto", choices=o.PRECISIONS)
    """Of the matrix products of student and teacher; a run goes on with the one it began with."""
    restart_collapsed: bool = True
    """Stop a fine-tuning whose network gives all rows one answer, or knows no more than the shares of the classes, and
    begin it again at 0.3 of the learning rate, once."""
    checkpoint_seconds: float = option(60.0, minimum=0)
    """Seconds between saved states, from which the same command resumes after a crash; 0: each step."""


@dataclass(frozen=True)
class TaskOptions(o.DataOptions):
    """What to fine-tune it for."""

    validation: Path | None = None
    """Rows to look at beside the test rows; with --validation-role test they are the test rows where there is no
    --test, and all of --train is learnt."""
    test: Path | None = None
    """Rows that the result is about; all of --train is learnt then. Without them 15 % of --train are, and without
    --validation as well another 15 % validate."""
    validation_rows: int = option(2000, minimum=0, way_out="0 takes all")
    """Validate on at most so many rows, of a task or of the corpus; 0 for all."""
    glue: Path | None = None
    """Folder with a folder per GLUE task: all that are there, one after another, and their averages."""
    max_length: int = 128
    """Longest row in tokens; longer texts are cut (squad: read in overlapping windows)."""


@dataclass(frozen=True)
class CheckOptions:
    """What else to do."""

    evaluate_only: bool = False
    """Train nothing, only judge the --model."""
    submission: bool = True
    """Where GLUE's test files are there, write the zip for the leaderboard."""
    ablate_steps: tuple[int, ...] = option((), metavar="N,N,...")
    """Pre-train --random architectures of --space up to the last of these steps and judge them at each: how early does
    their ranking settle? With --task each is fine-tuned at every step, else the validation loss counts."""
    random: int = 5
    """Architectures of --ablate-steps."""
    rivals: tuple[str, ...] = option((), choices=members("rivals", "RIVALS"))
    """Other ways to a network of this size, run one after another when a fine-tuning has ended and shown beside it in
    one table. Each takes as long again as the training itself."""


@dataclass(frozen=True)
class TrainConfig:
    """All options of `archwright train`."""

    student: StudentOptions = field(default_factory=StudentOptions)
    objective: ObjectiveOptions = field(default_factory=ObjectiveOptions)
    teaching: TeachingOptions = field(default_factory=TeachingOptions)
    schedule: ScheduleOptions = field(default_factory=ScheduleOptions)
    task: TaskOptions = field(default_factory=TaskOptions)
    checks: CheckOptions = field(default_factory=CheckOptions)
    output: o.OutputOptions = field(default_factory=o.OutputOptions)
