"""Make language models smaller, and find small ones, without guessing.

The commands as functions, with the options of the command line as keywords:

>>> import archwright as aw
>>> run = aw.compress(task="movie-reviews")
>>> run.select(params=0.5).save_pretrained("smaller")

`compress` takes objects too: a model and a tokenizer of transformers, rows as a `datasets.Dataset`, a pandas DataFrame
or a list of dictionaries, and callbacks that are told what the run does.

Importing the package loads no torch; the first call does. An option that is None is not given: it has its default, or
the value of the preset. Written by scripts/make_api.py from the configs of the commands.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from archwright.callbacks import Callback
from archwright.version import __version__

if TYPE_CHECKING:
    from archwright.commands.design import DesignResult
    from archwright.commands.discover import DiscoverResult
    from archwright.commands.rank import RankResult
    from archwright.commands.report import ReportResult
    from archwright.commands.score import ScoreTable
    from archwright.commands.select import SelectResult
    from archwright.commands.serve import ServeResult
    from archwright.commands.train import TrainResult
    from archwright.compression.export import ExportResult
    from archwright.compression.objects import RowsInMemory, Saved
    from archwright.compression.run import FinishedRun
    from archwright.compression.studies.comparison import MethodComparison
    from archwright.compression.studies.estimate import RunEstimate
    from archwright.compression.studies.preview import Preview

# fmt: off
__all__ = [
    "Callback", "__version__", "compress", "design", "discover", "export", "open_run", "rank", "report", "score",
    "select", "serve", "train"
]


def _run(command: str, options: dict[str, object]) -> Any:
    """The result of the command with these options."""
    from archwright.commands import COMMANDS, call

    return call(COMMANDS[command], options)


def _run_with_objects(command: str, options: dict[str, Any]) -> Any:
    """The same with objects, which are written into the run folder first, and callbacks."""
    from archwright.callbacks import use_callbacks
    from archwright.compression.objects import write_objects

    callbacks = options.pop("callbacks")
    with use_callbacks(callbacks), write_objects(options) as written:
        return _run(command, written)


@overload
def compress(
    *, model: "str | Path | Saved" = "minilm", tokenizer: "str | Path | Saved | None" = None,
    pooling: str | None = None, grouping: str = "groups", vocabulary: str | float | None = None,
    embedding_rank: int | None = None, width: str | float | None = None, weights: str | None = None, cut: str = "after",
    task: str | None = None, data: str | Path | None = None, train: "str | Path | RowsInMemory | None" = None,
    validation: "str | Path | RowsInMemory | None" = None, test: "str | Path | RowsInMemory | None" = None,
    validation_role: str | None = None, split: str | None = None, text_column: str = "text",
    text_pair_column: str | None = None, label_column: str = "label", label_columns: Sequence[str] = (),
    choice_columns: Sequence[str] = (), skip_empty: bool = False, labels: Sequence[str] = (), head: str = "auto",
    regression: bool | None = None, metric: str | None = None, class_weights: Sequence[str] = (), train_rows: int = 0,
    validation_rows: int | None = None, test_rows: int = 0, max_length: int = 128, preset: str = "default",
    method: str = "weight-sharing", space: str | None = None, strategy: str | None = None, order: str | None = None,
    teacher: str | None = None, start: str | None = None, epochs: float | None = None,
    distil_epochs: float | None = None, min_epochs: float | None = None, original_epochs: float | None = None,
    learning_rate: float | None = None, batch_size: int | None = None, precision: str | None = None,
    optimizer: str = "adamw", gradient_checkpointing: bool = False, temperature: float | None = None,
    repair: str | None = None, shares: Sequence[str] = (), train_embeddings: bool | None = None,
    fisher_trust: float | None = None, checkpoint_seconds: float = 60.0, sampler: str | None = None,
    trials: int | None = None, objectives: Sequence[str] = ("validation_error", "nonembedding_parameters"),
    for_: str = "compact", corners: Sequence[str] | None = None, selection: str | None = None,
    minutes: float | None = None, workers: int = 1, ray: str | None = None, store: str | None = None,
    params: str | float | None = None, latency_ms: float | None = None, total_params: str | float | bool = False,
    length: int = 0, rounds: int = 30, latency_device: str = "cpu", measure_int8: bool = False, honesty: int = 0,
    honesty_epochs: float | None = None, out: str | Path | None = None, seed: int = 0, threads: int = 0,
    device: str = "auto", deterministic: bool = False, callbacks: Sequence[Callback] = (),
) -> "FinishedRun": ...


@overload
def compress(
    *, compare: Sequence[str], model: "str | Path | Saved" = "minilm", tokenizer: "str | Path | Saved | None" = None,
    pooling: str | None = None, grouping: str = "groups", vocabulary: str | float | None = None,
    embedding_rank: int | None = None, width: str | float | None = None, weights: str | None = None, cut: str = "after",
    task: str | None = None, data: str | Path | None = None, train: "str | Path | RowsInMemory | None" = None,
    validation: "str | Path | RowsInMemory | None" = None, test: "str | Path | RowsInMemory | None" = None,
    validation_role: str | None = None, split: str | None = None, text_column: str = "text",
    text_pair_column: str | None = None, label_column: str = "label", label_columns: Sequence[str] = (),
    choice_columns: Sequence[str] = (), skip_empty: bool = False, labels: Sequence[str] = (), head: str = "auto",
    regression: bool | None = None, metric: str | None = None, class_weights: Sequence[str] = (), train_rows: int = 0,
    validation_rows: int | None = None, test_rows: int = 0, max_length: int = 128, preset: str = "default",
    method: str = "weight-sharing", space: str | None = None, strategy: str | None = None, order: str | None = None,
    teacher: str | None = None, start: str | None = None, epochs: float | None = None,
    distil_epochs: float | None = None, min_epochs: float | None = None, original_epochs: float | None = None,
    learning_rate: float | None = None, batch_size: int | None = None, precision: str | None = None,
    optimizer: str = "adamw", gradient_checkpointing: bool = False, temperature: float | None = None,
    repair: str | None = None, shares: Sequence[str] = (), train_embeddings: bool | None = None,
    fisher_trust: float | None = None, checkpoint_seconds: float = 60.0, sampler: str | None = None,
    trials: int | None = None, objectives: Sequence[str] = ("validation_error", "nonembedding_parameters"),
    for_: str = "compact", corners: Sequence[str] | None = None, selection: str | None = None,
    minutes: float | None = None, workers: int = 1, ray: str | None = None, store: str | None = None,
    params: str | float | None = None, latency_ms: float | None = None, total_params: str | float | bool = False,
    length: int = 0, rounds: int = 30, latency_device: str = "cpu", measure_int8: bool = False, honesty: int = 0,
    honesty_epochs: float | None = None, out: str | Path | None = None, seed: int = 0, threads: int = 0,
    device: str = "auto", deterministic: bool = False, callbacks: Sequence[Callback] = (),
) -> "MethodComparison": ...


@overload
def compress(
    *, preview: str, out: str | Path | None = None, seed: int = 0,
) -> "Preview": ...


@overload
def compress(
    *, dry_run: Literal[True], model: "str | Path | Saved" = "minilm", tokenizer: "str | Path | Saved | None" = None,
    pooling: str | None = None, grouping: str = "groups", vocabulary: str | float | None = None,
    embedding_rank: int | None = None, width: str | float | None = None, weights: str | None = None, cut: str = "after",
    task: str | None = None, data: str | Path | None = None, train: "str | Path | RowsInMemory | None" = None,
    validation: "str | Path | RowsInMemory | None" = None, test: "str | Path | RowsInMemory | None" = None,
    validation_role: str | None = None, split: str | None = None, text_column: str = "text",
    text_pair_column: str | None = None, label_column: str = "label", label_columns: Sequence[str] = (),
    choice_columns: Sequence[str] = (), skip_empty: bool = False, labels: Sequence[str] = (), head: str = "auto",
    regression: bool | None = None, metric: str | None = None, class_weights: Sequence[str] = (), train_rows: int = 0,
    validation_rows: int | None = None, test_rows: int = 0, max_length: int = 128, preset: str = "default",
    method: str = "weight-sharing", space: str | None = None, strategy: str | None = None, order: str | None = None,
    teacher: str | None = None, start: str | None = None, epochs: float | None = None,
    distil_epochs: float | None = None, min_epochs: float | None = None, original_epochs: float | None = None,
    learning_rate: float | None = None, batch_size: int | None = None, precision: str | None = None,
    optimizer: str = "adamw", gradient_checkpointing: bool = False, temperature: float | None = None,
    repair: str | None = None, shares: Sequence[str] = (), train_embeddings: bool | None = None,
    fisher_trust: float | None = None, checkpoint_seconds: float = 60.0, sampler: str | None = None,
    trials: int | None = None, objectives: Sequence[str] = ("validation_error", "nonembedding_parameters"),
    for_: str = "compact", corners: Sequence[str] | None = None, selection: str | None = None,
    minutes: float | None = None, workers: int = 1, ray: str | None = None, store: str | None = None,
    params: str | float | None = None, latency_ms: float | None = None, total_params: str | float | bool = False,
    length: int = 0, rounds: int = 30, latency_device: str = "cpu", measure_int8: bool = False, honesty: int = 0,
    honesty_epochs: float | None = None, out: str | Path | None = None, seed: int = 0, threads: int = 0,
    device: str = "auto", deterministic: bool = False, callbacks: Sequence[Callback] = (),
) -> "RunEstimate": ...


def compress(
    *, model: "str | Path | Saved" = "minilm", tokenizer: "str | Path | Saved | None" = None,
    pooling: str | None = None, grouping: str = "groups", vocabulary: str | float | None = None,
    embedding_rank: int | None = None, width: str | float | None = None, weights: str | None = None, cut: str = "after",
    task: str | None = None, data: str | Path | None = None, train: "str | Path | RowsInMemory | None" = None,
    validation: "str | Path | RowsInMemory | None" = None, test: "str | Path | RowsInMemory | None" = None,
    validation_role: str | None = None, split: str | None = None, text_column: str = "text",
    text_pair_column: str | None = None, label_column: str = "label", label_columns: Sequence[str] = (),
    choice_columns: Sequence[str] = (), skip_empty: bool = False, labels: Sequence[str] = (), head: str = "auto",
    regression: bool | None = None, metric: str | None = None, class_weights: Sequence[str] = (), train_rows: int = 0,
    validation_rows: int | None = None, test_rows: int = 0, max_length: int = 128, preset: str = "default",
    method: str = "weight-sharing", space: str | None = None, strategy: str | None = None, order: str | None = None,
    teacher: str | None = None, start: str | None = None, epochs: float | None = None,
    distil_epochs: float | None = None, min_epochs: float | None = None, original_epochs: float | None = None,
    learning_rate: float | None = None, batch_size: int | None = None, precision: str | None = None,
    optimizer: str = "adamw", gradient_checkpointing: bool = False, temperature: float | None = None,
    repair: str | None = None, shares: Sequence[str] = (), train_embeddings: bool | None = None,
    fisher_trust: float | None = None, checkpoint_seconds: float = 60.0, sampler: str | None = None,
    trials: int | None = None, objectives: Sequence[str] = ("validation_error", "nonembedding_parameters"),
    for_: str = "compact", corners: Sequence[str] | None = None, selection: str | None = None,
    minutes: float | None = None, workers: int = 1, ray: str | None = None, store: str | None = None,
    compare: Sequence[str] = (), params: str | float | None = None, latency_ms: float | None = None,
    total_params: str | float | bool = False, length: int = 0, rounds: int = 30, latency_device: str = "cpu",
    measure_int8: bool = False, honesty: int = 0, honesty_epochs: float | None = None, out: str | Path | None = None,
    seed: int = 0, threads: int = 0, device: str = "auto", deterministic: bool = False, preview: str | None = None,
    dry_run: bool = False, callbacks: Sequence[Callback] = (),
) -> "FinishedRun | MethodComparison | Preview | RunEstimate":
    """Shrink a pre-trained model for a task: super-network fine-tuning + Pareto search.

    Returns the run with its front; several with `compare`, spaces with `preview`, what it costs with `dry_run`.

    model: A folder or hub id of a checkpoint, pre-trained or fine-tuned: BERT, RoBERTa, XLM-RoBERTa, CamemBERT,
        MPNet, ModernBERT, DeBERTa, DistilBERT, ELECTRA, GPT-2, Llama, Qwen2, Qwen3, Mistral, Phi-3, Gemma 2 and 3.
    tokenizer: Folder or hub id of the tokenizer, where the checkpoint has none beside it.
    pooling: How the head reads the text: first token, mean over tokens or last token.
    grouping: What counts as a head where several query heads share keys and values: such a group as a whole, or
        equally many query heads of every group.
    vocabulary: Keep only so many tokens (the most frequent of the training texts), task for all that occur in the
        training texts, or those that a file lists, one per line.
    embedding_rank: Width of the table of word vectors, with a linear behind it that widens them.
    width: Hidden width of an encoder: so many channels of its residual stream stay, by their importance for the
        task, and what read the others is repaired by least squares.
    weights: Precision of the weights in memory, in the run folder and in exports.
    cut: When --vocabulary and --embedding-rank make the network smaller.
    task: A built-in task (movie-reviews, movie-reviews/imdb, glue/SST-2, ...), squad for questions about texts, lm
        for the next token of your own text in --train, tokens for its words with tags, multi-label for any number
        of labels per text, embeddings for the sentence vectors of texts or pairs, or hf:NAME of the datasets
        library.
    data: Folder with train.tsv and dev.tsv of a GLUE task, or train*.json and dev*.json of squad (or one such file:
        it is cut by articles).
    train: Your own rows: CSV, TSV, JSON, JSONL or Parquet, packed with gzip or not, or a folder that `datasets`
        saved.
    validation: Rows that choose between sub-networks.
    test: Rows that only the final report looks at.
    validation_role: What --validation is for where there is no --test.
    split: How rows are cut from --train. squad keeps articles together and lm the order of the text in any case.
    text_column: Column of the text.
    text_pair_column: Column of the second text, for tasks about two texts.
    label_column: Column of the label or number.
    label_columns: Multi-label: a column of 0 and 1 for every label, instead of --label-column.
    choice_columns: Multiple choice: columns of the choices that may go on from the text.
    skip_empty: Leave out rows without text or label, and say how many, instead of refusing the file.
    labels: Names of the classes as the rows write them, in the order of the checkpoint's outputs.
    head: Keep the checkpoint's own head where it is for these classes, or always begin with a new one.
    regression: Predict a number instead of a class.
    metric: What networks are judged by, the error being 1 - it: accuracy, f1, macro_f1, mcc, roc_auc, spearman,
        pearson, micro_f1, entity_f1, token_accuracy, as the task allows, or a function of yours, called with labels
        and predictions (and logits, if it has such a parameter), higher is better.
    class_weights: Classification: how much the classes count in training, in the order of their ids.
    train_rows: Train on at most so many rows (lm: blocks of --max-length tokens), 0 for all.
    validation_rows: Judge sub-networks on at most so many rows, 0 for all.
    test_rows: Report on at most so many test rows.
    max_length: Longest text in tokens.
    preset: Values for many options at once.
    method: How smaller networks are found.
    space: Which sub-networks exist.
    strategy: Which sub-networks take part in a training step.
    order: Put heads, units and layers into the order of their importance for the task first, measured on the fine-
        tuned original and training rows: by Fisher information (mean squared gradient of a mask) or its first-order
        relative.
    teacher: Whose answers sub-networks learn from beside the labels: the fine-tuned original, which stays as it is,
        or the super-network itself at every step.
    start: Weights the super-network starts from: those of the fine-tuned original, or the pre-trained ones.
    epochs: Passes over the training rows: of the super-network, or with --method standard and layer-dropping of
        each network that is trained by itself.
    distil_epochs: Space chain: passes over the training rows of networks of 60, 50, 40, 30, 20 and 10 %, or, where
        a budget leaves 60 % at most, of its size and what is smaller, each trained by itself towards the original's
        answers.
    min_epochs: Sampler mo-asha: passes after which a network is first compared with the others.
    original_epochs: Passes for fine-tuning the original, which every result is compared with.
    learning_rate: Peak learning rate of both trainings.
    batch_size: Texts per step.
    precision: Of the matrix products in trainings and in the evaluations of the search, which choose what is scored
        again.
    optimizer: Of all trainings.
    gradient_checkpointing: Keep only the inputs of layers for the way back and compute the rest again: much less
        memory for activations, a third more time.
    temperature: Softens the answers that sub-networks learn from.
    repair: Of networks that are pruned without training: what is done to the weights that are left, on training
        rows.
    shares: Methods retraining-free, head-pruning and magnitude: sizes to prune to, of the non-embedding parameters
        (retraining-free with --preset paper: of their FLOPs).
    train_embeddings: Train the embedding tables too.
    fisher_trust: Method retraining-free: how much the rearrangement of masks trusts what is off the diagonal of the
        Fisher information.
    checkpoint_seconds: Seconds between saved states of a training, from which the same command resumes after a
        crash.
    sampler: What to try next.
    trials: Sub-networks to evaluate.
    objectives: What to trade off, the validation error and at least one cost.
    for_: What the result is to be exported to: the search stays where that export is exact, and latency is that of
        its runtime.
    corners: Corners of the space that every sampler tries first.
    selection: Which validation rows choose the members of the front.
    minutes: Wall-clock for everything: the trainings are shortened, and the search ends early enough to measure the
        front.
    workers: Processes that search together on this machine.
    ray: Evaluate sub-networks, and with --method standard or layer-dropping train them, on this Ray cluster:
        host:port, auto for the one of this machine, or local to start one.
    store: Where the trials are kept: sqlite:///FILE or postgresql://.
    compare: Run these one after another, each with its own --minutes, and draw them together.
    params: At most so many non-embedding parameters (60%: of the original's, or a number such as 5M).
    latency_ms: At most so many milliseconds for one text on one thread of this machine.
    total_params: At most so many parameters in all (25%: of the untouched checkpoint's, or a number such as 6M).
    length: Tokens of the text that FLOPs and latency are about.
    rounds: Interleaved rounds of latency measurement.
    latency_device: Where latency is measured: what the smaller model is for, not what it is trained on.
    measure_int8: Export each member of the front to int8 ONNX and weigh the file, about ten seconds each.
    honesty: Fine-tune so many random sub-networks by themselves too, from the pre-trained weights, and report how
        well the errors with shared weights rank them.
    honesty_epochs: Passes over the training rows of each.
    out: Run folder.
    seed: The same seed gives the same result (compress: with one worker and no latency objective).
    threads: Threads per process.
    device: Where to train and evaluate.
    deterministic: The same numbers on a GPU every time, with slower algorithms where there are faster ones.
    preview: Only show the spaces of this model: example masks, sizes, smallest reachable.
    dry_run: Check everything, time a few steps, and estimate time, memory and disk of the run.
    callbacks: Told about phases, steps of trainings, trials and the end.
    """
    return _run_with_objects("compress", locals())


def select(
    run: str | Path, *, params: str | float | None = None, latency_ms: float | None = None,
    total_params: str | float | bool = False, flops: str | float | None = None, memory: str | float | None = None,
    int8_size: str | float | None = None, max_loss: str | float | None = None, surely: bool = False,
    recover_epochs: float = 0.0, repair: str | None = None, recover_learning_rate: float = 0.0001, lora: int = 0,
    threads: int = 0, to: str | None = None, int8: bool = False, out: str | Path | None = None,
) -> "SelectResult":
    """From a finished run, pick a sub-network by budget, and export it.

    Returns the pick, its neighbours and what was written.

    run: Folder of an `archwright compress` run.
    params: At most so many non-embedding parameters (60%: of the original's, or a number such as 5M).
    latency_ms: At most so many milliseconds for one text on one thread of this machine.
    total_params: At most so many parameters in all (25%: of the untouched checkpoint's, or a number such as 6M).
    flops: At most so many floating point operations for one text (60%: of the original's, or a number such as
        200M).
    memory: At most so many bytes (60MB, or 60%: of the original's), measured: of its weights on disk, and of the
        peak of resident memory in a fresh process that loads them and answers one text, beyond what the runtime
        itself takes.
    int8_size: At most so many bytes (12MB, or 60%: of the original's 8-bit weights) of its ONNX file with 8-bit
        weights, measured.
    max_loss: The smallest sub-network that loses at most so many points of the metric on the validation rows.
    surely: With --max-loss: the upper end of the loss's 95 % interval must be within it.
    recover_epochs: Fine-tune the chosen sub-network so many epochs by itself, also towards the original's answers.
    repair: What is done to the chosen sub-network's weights before that.
    recover_learning_rate: Peak learning rate of that.
    lora: Train only adapters of this rank beside the linears of its layers, and put what they learnt into the
        weights.
    threads: Threads of that.
    to: Format of the checkpoint.
    int8: ONNX only: quantize the weights to 8 bit as well.
    out: Folder to write.
    """
    return _run("select", locals())


def export(
    run: str | Path, *, trial: int | None = None, recovered: bool = False, against: str | None = None,
    to: str | None = None, int8: bool = False, out: str | Path | None = None,
) -> "ExportResult":
    """A sub-network or a trained network as an ordinary checkpoint or ONNX, with a parity report.

    Returns the folder of the checkpoint and its parity report.

    run: Folder of an `archwright compress` run, or of a network that `archwright train` wrote.
    trial: Of a compress run: number of the trial, as in the table of the front.
    recovered: The network as `select --recover-epochs` trained it further.
    against: Of a trained network: model (folder, hub id or minilm) to time it against, such as its teacher.
    to: Format of the checkpoint.
    int8: ONNX only: quantize the weights to 8 bit as well.
    out: Folder to write.
    """
    return _run("export", locals())


def report(
    runs: Sequence[str | Path], *, out: str | Path = "report", seed: int = 0,
) -> "ReportResult":
    """Several finished runs, compared as in the paper: one page with its figures.

    Returns the page and its numbers.

    runs: Folders of finished runs and comparisons, or files that --json wrote.
    out: Folder for the page.
    seed: Of the bootstrap samples for average ranks.
    """
    return _run("report", locals())


def serve(
    runs: str | Path = "runs", *, host: str = "127.0.0.1", port: int = 8321, token: str | None = None,
    names: Sequence[str] = (), allow_start: bool = False, open: bool = False,
) -> "ServeResult":
    """The local web page: runs, Pareto fronts, sub-networks to try and export, proxies, architectures.

    Runs until it is interrupted; in a notebook or console it returns at once, with its address and `close()`.

    runs: Folder with runs below it.
    host: Address to listen on.
    port: Port to listen on.
    token: What a browser must know.
    names: Further host names that the page is known by, as behind a proxy.
    allow_start: Whether runs may be started, stopped and resumed on the page.
    open: Whether to open the page in a browser.
    """
    return _run("serve", locals())


def score(
    *, space: str = "flexibert", variant: str | None = None, config: str | Path | None = None,
    random: int | None = None, html: str | Path | None = None, proxies: Sequence[str] = (), all_proxies: bool = False,
    proxy: Sequence[str] = (), batch_rows: int | None = None, length: int | None = None, loss: str | None = None,
    initial: str = "own", text: str | Path | None = None, workers: int = 0, ray: str | None = None, seed: int = 0,
    out: str | Path = "runs/scores", seeds: int = 1, batches: int = 1,
) -> "ScoreTable":
    """Training-free scores of one or many architectures.

    Returns one row of scores per architecture.

    space: Where they come from.
    variant: How a config becomes a network, where a space knows several ways.
    config: File with one config, a list of them, or one per line, as JSON.
    random: So many random ones instead.
    html: Page to write.
    proxies: Names of proxies.
    all_proxies: Also those that take long: of the Hessian, of noise, nuclear norms and determinants.
    proxy: A proxy of your own: a function of a probe in a Python file.
    batch_rows: Texts in a batch.
    length: Tokens of a text.
    loss: What is back-propagated: electra or mlm (encoders), lm (decoders, RNNs), published (variant published).
    initial: Scale of the initial weights.
    text: Text file the batches come from.
    workers: Processes with one thread each.
    ray: Ray cluster that scores instead (host:port, auto, or local).
    seed: Of weights, batches and bootstrap samples.
    out: Folder that keeps every score.
    seeds: Initial weights per architecture.
    batches: Batches per architecture.
    """
    return _run("score", locals())


def rank(
    benchmark: str = "nas-bert", *, data: str | Path | None = None, variant: str | None = None,
    target: str | None = None, proxies: Sequence[str] = (), all_proxies: bool = False, proxy: Sequence[str] = (),
    batch_rows: int | None = None, length: int | None = None, loss: str | None = None, initial: str = "own",
    text: str | Path | None = None, workers: int = 0, ray: str | None = None, seed: int = 0,
    out: str | Path = "runs/scores", seeds: int = 1, batches: int = 1, rows: int | None = None,
    budget_minutes: float | None = None, html: str | Path | None = None, ablation: bool = True,
    repeats: int | None = None, xray: bool = False, compare_published: bool = False, samples: int = 1000,
) -> "RankResult":
    """Judge proxies on benchmarks of trained architectures.

    Returns one row per proxy: how well it orders trained architectures.

    benchmark: Table of trained architectures.
    data: Folder with its files.
    variant: nas-bert: trained (as the networks really were), described (as the paper says) or published (as the
        public script scored them).
    target: What training gave, to be predicted.
    proxies: Names of proxies.
    all_proxies: Also those that take long: of the Hessian, of noise, nuclear norms and determinants.
    proxy: A proxy of your own: a function of a probe in a Python file.
    batch_rows: Texts in a batch.
    length: Tokens of a text.
    loss: What is back-propagated: electra or mlm (encoders), lm (decoders, RNNs), published (variant published).
    initial: Scale of the initial weights.
    text: Text file the batches come from.
    workers: Processes with one thread each.
    ray: Ray cluster that scores instead (host:port, auto, or local).
    seed: Of weights, batches and bootstrap samples.
    out: Folder that keeps every score.
    seeds: Initial weights per architecture.
    batches: Batches per architecture.
    rows: Networks to build and score, a seeded sample with all cells in proportion.
    budget_minutes: Minutes it may take: the sample fits them by estimate, and scoring ends when they are over.
    html: Page with all figures.
    ablation: Ten architectures, one per decile of the trained result, with other initial weights and other batches:
        how much of a proxy is noise.
    repeats: Initial weights, and batches, of each of them.
    xray: Print what the trained result says about every choice of the space.
    compare_published: Print the numbers that papers report beside ours.
    samples: Bootstrap samples behind an interval.
    """
    return _run("rank", locals())


def discover(
    benchmark: str = "nas-bert", *, data: str | Path | None = None, variant: str | None = None,
    target: str | None = None, exhaustive: bool = False, evolve: bool = False, unary: int | None = None,
    inputs: str | None = None, reduction: str | None = None, factor: bool = False, fitness: str | None = None,
    fold_seeds: int = 0, preset: str = "default", generations: int | None = None, population: int | None = None,
    parents: str | None = None, crossover: float | None = None, mutation: float | None = None, pps: bool | None = None,
    sample: int | None = None, distinct: bool | None = None, seeds: int = 3, ablate: bool = False,
    save: str | None = None, transfer: Sequence[str] = (), published: str = "cheap", html: str | Path | None = None,
    samples: int = 1000, batch_rows: int | None = None, length: int | None = None, loss: str | None = None,
    initial: str = "own", text: str | Path | None = None, workers: int = 0, ray: str | None = None,
    seed: int | None = None, out: str | Path = "runs/scores",
) -> "DiscoverResult":
    """Find better proxies as formulas, by evolution and exhaustively.

    Returns formulas, judged on rows kept away from the search.

    benchmark: Table of trained architectures.
    data: Folder with its files.
    variant: nas-bert: trained (as the networks really were), described (as the paper says) or published (as the
        public script scored them).
    target: What training gave, to be predicted.
    exhaustive: Rank all formulas of the space.
    evolve: Search by evolution (LPZero, Algorithm 1), beside evolution without its pruning strategy and random
        search.
    unary: Unary operations per branch: 1 or 2, with --evolve up to 5.
    inputs: What formulas look at: lpzero (the six of the paper: A, J, G, H, W, S), forward (without gradients: A,
        H, W, S, weights by role, pre-activations, hidden states, outputs of heads), extended (also gradients of
        outputs, value times gradient, counts), layers (heads, linears, widths and weights of each layer),
        positional (both, sums over linears, and linears without the FFN of the last layer), or names such as W,S.
    reduction: How the numbers of layers become a score: sum, mean, first, last, but_last (all but the last), rising
        and falling (weights by position), largest, logsum.
    factor: Not in the paper: scores also times a count (parameters, depth, width, ...), its root, square, log or
        inverse.
    fitness: What the best formula is best at.
    fold_seeds: Splits of the rows into five folds, each searched and judged anew.
    preset: Settings that go together.
    generations: Offspring, one after another.
    population: Formulas that live together.
    parents: Share of the population that has offspring.
    crossover: How often an offspring has two parents rather than being a copy of one.
    mutation: How often one choice of an offspring is changed.
    pps: Predictive-Pruning Strategy: throw away formulas that Table 6 of the paper rules out, and those that are
        constant on four architectures.
    sample: Architectures a fitness is taken on, 0 for all.
    distinct: Not in the paper: an offspring that was scored before is drawn again.
    seeds: Searches of each kind, with random numbers of their own.
    ablate: Also the paper's ablations: populations of 80, 100 and 200, two to five unary operations (Figures 7 and
        13, Table 5), and what it helps to score no formula twice.
    save: Keep the best formula as a proxy of this name, for `score` and `rank`.
    transfer: Other benchmarks: searched in the same way, and what is found on each judged on all.
    published: Published proxies whose place among the formulas is shown.
    html: Page with all figures.
    samples: Bootstrap samples behind an interval.
    batch_rows: Texts in a batch.
    length: Tokens of a text.
    loss: What is back-propagated: electra or mlm (encoders), lm (decoders, RNNs), published (variant published).
    initial: Scale of the initial weights.
    text: Text file the batches come from.
    workers: Processes with one thread each.
    ray: Ray cluster that scores instead (host:port, auto, or local).
    seed: Of weights, batches and bootstrap samples.
    out: Folder that keeps every score.
    """
    return _run("discover", locals())


def train(
    *, design: str | Path | None = None, scaled_up: bool = False, space: str | None = None, variant: str | None = None,
    config: str | Path | None = None, model: str | None = None, start: str = "random", pooling: str | None = None,
    tokenizer: str | None = None, vocabulary: int | None = None, lesson: str | None = None, preset: str = "default",
    corpus: str | Path | None = None, corpus_validation: str | Path | None = None, layout: str = "packed",
    teacher: str | None = None, teacher_epochs: float = 3.0, teacher_learning_rate: float = 5e-05,
    layer_weight: float = 1.0, logit_weight: float = 1.0, label_weight: float = 0.0, mlm_weight: float = 0.0,
    augment: int = 0, augment_with: str = "auto", unlabelled: str | Path | None = None,
    teacher_cache: str | Path | None = None, teacher_cache_gb: float = 4.0, steps: int | None = None,
    epochs: float | None = None, minutes: float | None = None, batch_size: int | None = None, accumulate: int = 1,
    learning_rate: float | None = None, warmup: float | None = None, weight_decay: float | None = None,
    layer_decay: float | None = None, precision: str = "auto", restart_collapsed: bool = True,
    checkpoint_seconds: float = 60.0, task: str | None = None, data: str | Path | None = None,
    train: str | Path | None = None, validation: str | Path | None = None, test: str | Path | None = None,
    validation_role: str = "choose", split: str = "grouped", text_column: str = "text",
    text_pair_column: str | None = None, label_column: str = "label", label_columns: Sequence[str] = (),
    choice_columns: Sequence[str] = (), skip_empty: bool = False, labels: Sequence[str] = (), head: str = "auto",
    regression: bool | None = None, metric: str | None = None, class_weights: Sequence[str] = (), train_rows: int = 0,
    validation_rows: int = 2000, test_rows: int = 0, max_length: int = 128, glue: str | Path | None = None,
    evaluate_only: bool = False, submission: bool = True, ablate_steps: Sequence[int] = (), random: int = 5,
    rivals: Sequence[str] = (), out: str | Path | None = None, seed: int = 0, threads: int = 0, device: str = "auto",
    deterministic: bool = False,
) -> "TrainResult":
    """Pre-train, distil, fine-tune or evaluate one network.

    Returns the log and the metrics of the trained network.

    design: A file that `archwright design` wrote: its architecture, untrained.
    scaled_up: Of that file the larger architecture, which `design --scale-up` added.
    space: Space of --config instead.
    variant: How a config becomes a network, where the space knows several ways.
    config: File with one config of --space as JSON.
    model: Go on from trained weights instead: a folder that `train` wrote, a folder or hub id of a Hugging Face
        checkpoint, or minilm.
    start: First weights of a network that is built anew.
    pooling: How the head of a task reads the text.
    tokenizer: Of a network that is built anew: a folder or hub id, also of GPT-2's encoder.json and vocab.bpe.
    vocabulary: Most tokens of a tokenizer that is made of the corpus.
    lesson: What to learn.
    preset: Hyperparameters that go together.
    corpus: Text file to pre-train on, one text per line.
    corpus_validation: Text file for the validation loss.
    layout: How the corpus becomes rows.
    teacher: Folder or hub id of a Hugging Face encoder with the same tokenizer, or minilm.
    teacher_epochs: Passes over the task's rows for that.
    teacher_learning_rate: Peak learning rate of that.
    layer_weight: Weight of the teacher's states in fine-tuning.
    logit_weight: Weight of the teacher's answers in fine-tuning.
    label_weight: Weight of the labels beside them.
    mlm_weight: Weight of guessing hidden tokens beside the layers on text (--lesson distil).
    augment: Copies of every training row with some words exchanged, which the teacher answers.
    augment_with: Where other words come from.
    unlabelled: Further rows of the task without labels, which the teacher answers: a text per line (.txt), or a
        table with the columns of the texts.
    teacher_cache: Folder for the teacher's states and answers, which other runs with the same teacher and rows may
        share.
    teacher_cache_gb: Most gigabytes for them.
    steps: Optimizer updates.
    epochs: Passes over the data instead.
    minutes: Wall-clock for all of it, at most 30 % of it for a teacher that learns the task first.
    batch_size: Rows per batch and process.
    accumulate: Batches per update.
    learning_rate: Peak learning rate.
    warmup: Share of the steps with rising learning rate, 0 to 1.
    weight_decay: Pulls matrices towards zero.
    layer_decay: Factor of the learning rate from one layer down to the next.
    precision: Of the matrix products of student and teacher.
    restart_collapsed: Stop a fine-tuning whose network gives all rows one answer, or knows no more than the shares
        of the classes, and begin it again at 0.3 of the learning rate, once.
    checkpoint_seconds: Seconds between saved states, from which the same command resumes after a crash.
    task: A built-in task (movie-reviews, movie-reviews/imdb, glue/SST-2, ...), squad for questions about texts, lm
        for the next token of your own text in --train, tokens for its words with tags, multi-label for any number
        of labels per text, embeddings for the sentence vectors of texts or pairs, or hf:NAME of the datasets
        library.
    data: Folder with train.tsv and dev.tsv of a GLUE task, or train*.json and dev*.json of squad (or one such file:
        it is cut by articles).
    train: Your own rows: CSV, TSV, JSON, JSONL or Parquet, packed with gzip or not, or a folder that `datasets`
        saved.
    validation: Rows to look at beside the test rows.
    test: Rows that the result is about.
    validation_role: What --validation is for where there is no --test.
    split: How rows are cut from --train. squad keeps articles together and lm the order of the text in any case.
    text_column: Column of the text.
    text_pair_column: Column of the second text, for tasks about two texts.
    label_column: Column of the label or number.
    label_columns: Multi-label: a column of 0 and 1 for every label, instead of --label-column.
    choice_columns: Multiple choice: columns of the choices that may go on from the text.
    skip_empty: Leave out rows without text or label, and say how many, instead of refusing the file.
    labels: Names of the classes as the rows write them, in the order of the checkpoint's outputs.
    head: Keep the checkpoint's own head where it is for these classes, or always begin with a new one.
    regression: Predict a number instead of a class.
    metric: What networks are judged by, the error being 1 - it: accuracy, f1, macro_f1, mcc, roc_auc, spearman,
        pearson, micro_f1, entity_f1, token_accuracy, as the task allows, or a function of yours, called with labels
        and predictions (and logits, if it has such a parameter), higher is better.
    class_weights: Classification: how much the classes count in training, in the order of their ids.
    train_rows: Train on at most so many rows (lm: blocks of --max-length tokens), 0 for all.
    validation_rows: Validate on at most so many rows, of a task or of the corpus.
    test_rows: Report on at most so many test rows.
    max_length: Longest row in tokens.
    glue: Folder with a folder per GLUE task: all that are there, one after another, and their averages.
    evaluate_only: Train nothing, only judge the --model.
    submission: Where GLUE's test files are there, write the zip for the leaderboard.
    ablate_steps: Pre-train --random architectures of --space up to the last of these steps and judge them at each:
        how early does their ranking settle? With --task each is fine-tuned at every step, else the validation loss
        counts.
    random: Architectures of --ablate-steps.
    rivals: Other ways to a network of this size, run one after another when a fine-tuning has ended and shown
        beside it in one table.
    out: Run folder.
    seed: The same seed gives the same result (compress: with one worker and no latency objective).
    threads: Threads per process.
    device: Where to train and evaluate.
    deterministic: The same numbers on a GPU every time, with slower algorithms where there are faster ones.
    """
    return _run("train", locals())


def design(
    *, space: str = "nlu-small", variant: str | None = None, proxy: Sequence[str] = ("w_pca",), method: str = "proxy",
    compare_proxies: bool = False, max_parameters: str | float | None = None, max_flops: str | float | None = None,
    max_latency_ms: float | None = None, sampler: str = "genetic", population: int = 50, generations: int = 40,
    distinct: bool = False, seeds: int = 1, against: Sequence[str] = (), teacher: str = "minilm",
    task: str | None = None, data: str | Path | None = None, steps: int | None = None, batch_size: int | None = None,
    learning_rate: float | None = None, precision: str = "auto", validation_rows: int = 128,
    batch_rows: int | None = None, length: int | None = None, loss: str | None = None, initial: str = "own",
    text: str | Path | None = None, workers: int = 0, ray: str | None = None, seed: int = 0,
    out: str | Path = "runs/design", scale_up: int | None = None, html: str | Path | None = None,
    rivals: Sequence[str] = (), rivals_task: str | None = None, rivals_data: str | Path | None = None,
    rivals_minutes: float = 10.0,
) -> "DesignResult":
    """Search the architecture of a small language model without training any.

    Returns the design with the highest score within the limits.

    space: Architectures to choose from.
    variant: How a config becomes a network, where a space knows several ways.
    proxy: What a design should score high in: a proxy that `score --help` lists, or a function of a probe in a
        Python file of your own.
    method: What designs are judged by.
    compare_proxies: The same search under saliency, activation distance, synaptic diversity, head and softmax
        confidence, number of parameters, V-PCA, W-PCA, and those of --proxy, in one table.
    max_parameters: Parameters without the head of a loss, such as 15.7M.
    max_flops: Operations per token in a row of 64, such as 20M.
    max_latency_ms: Milliseconds of the whole network for one text on one core of this machine.
    sampler: What to try next.
    population: Designs of a generation.
    generations: Generations.
    distinct: No design is tried twice: finds a little more, and takes longer.
    seeds: Searches, each with its own weights, batch and random numbers.
    against: Samplers to search with the same budget, for comparison.
    teacher: Whose states the super-network learns on --text, and then states and answers on --task: a folder or hub
        id of a Hugging Face encoder with the same tokenizer, or minilm.
    task: Labelled rows (movie-reviews, glue/SST-2, ...): 90 % of the training rows are learnt after the text, on
        the rest paths are judged.
    data: Folder with the files of a GLUE task.
    steps: Training steps of each stage, and of a teacher that learns the task first.
    batch_size: Rows of a step.
    learning_rate: Highest learning rate, which rises over a tenth of the steps and falls to zero.
    precision: Of the matrix products in training steps.
    validation_rows: Rows that a path is judged on.
    batch_rows: Texts in a batch.
    length: Tokens of a text.
    loss: What is back-propagated: electra or mlm (encoders), lm (decoders, RNNs), published (variant published).
    initial: Scale of the initial weights.
    text: Text file the batches come from.
    workers: Processes with one thread each.
    ray: Ray cluster that scores instead (host:port, auto, or local).
    seed: Of weights, batches and bootstrap samples.
    out: Folder for design.json and the page.
    scale_up: Also the found design widened and deepened so many times, with its new counts.
    html: Page with all figures.
    rivals: Train the found design, filled from MiniLM, on --rivals-task, then these other ways to a network of its
        size, and show all in one table.
    rivals_task: Labelled rows that they learn (movie-reviews, glue/SST-2, ...).
    rivals_data: Folder with the files of a GLUE task.
    rivals_minutes: Wall-clock for each.
    """
    return _run("design", locals())


def open_run(folder: str | Path) -> "FinishedRun":
    """A finished run with `.front`, `.select(...)` and `.show()`, as `compress` returned it."""
    from archwright.compression.run import load_run

    return load_run(Path(folder))
