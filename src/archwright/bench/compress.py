"""`archwright bench`: how fast archwright is, as ratios of things timed alternately in one run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from archwright.compression.finetuning import supernet_step
from archwright.configs import compress as o
from archwright.data import batches, encode, evaluation_batches, load_task, load_tokenizer
from archwright.data.batching import Batch, Encoded, batch_of
from archwright.errors import BadInput
from archwright.networks.embedded import resolve_model
from archwright.networks.load import freeze_embeddings, load_supernet
from archwright.networks.pruned import PrunedNetwork
from archwright.progress import progress
from archwright.search import sample
from archwright.spaces.subnetwork import subnet_space
from archwright.store.environment import environment
from archwright.subnet.anatomy import anatomy
from archwright.subnet.extract import extract
from archwright.subnet.masking import zeroed
from archwright.subnet.slicing import subnetwork
from archwright.subnet.spec import LayerSpec, SubnetSpec, flops
from archwright.subnet.supernet import plain_update
from archwright.training import task_loss
from archwright.training.task_data import EVALUATION_TOKENS

if TYPE_CHECKING:
    from rich.console import Console

PADDED_LENGTH, PADDED_BATCH = 128, 32
"""How the public code of the paper evaluates: batches of 32, every text padded to 128 tokens."""
NETWORKS_PER_ROUND = 6


@dataclass(frozen=True)
class Ratio:
    """How often the first fits into the second, from rounds that time both."""

    name: str
    median: float
    low: float
    high: float
    target: str
    """`>= X` or `<= X`; empty for what is only told."""

    @property
    def met(self) -> bool | None:
        """None without a target."""
        sign, _, bound = self.target.partition(" ")
        if not bound:
            return None
        return self.median >= float(bound) if sign == ">=" else self.median <= float(bound)


WORDS = {True: "yes", False: "no", None: ""}


@dataclass(frozen=True)
class Benched:
    """All ratios of one run."""

    what: str
    ratios: tuple[Ratio, ...]
    environment: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        rows = [{**vars(ratio), "met": ratio.met} for ratio in self.ratios]
        return {
            "schema": "archwright/bench/1",
            "what": self.what,
            "ratios": rows,
            "environment": dict(self.environment),
        }

    def show(self, console: "Console") -> None:
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        for name in ("ratio", "median", "range over rounds", "target", "met"):
            table.add_column(name, justify="left" if name == "ratio" else "right")
        for r in self.ratios:
            table.add_row(r.name, f"{r.median:.2f}", f"{r.low:.2f} to {r.high:.2f}", r.target, WORDS[r.met])
        console.print(table)


def bench(settings: o.Bench) -> Benched:
    """Ratios of the part asked for; one torch thread."""
    if settings.rows < 50 or settings.repeats < 1:
        raise BadInput(
            f"--rows must be at least 50 and --repeats at least 1, got {settings.rows} and {settings.repeats}."
        )
    torch.set_num_threads(1)
    module, _, name = BENCHES[settings.what].partition(":")
    ratios: Callable[[o.Bench], list[Ratio]] = getattr(import_module(module), name)
    return Benched(settings.what, tuple(ratios(settings)), environment())


BENCHES = {
    "compress": "archwright.bench.compress:bench_compress",
    "design": "archwright.bench.design:bench_design",
    "memory": "archwright.bench.memory:bench_memory",
    "probe": "archwright.bench.probe:bench_probe",
    "search": "archwright.bench.search:bench_search",
    "train": "archwright.bench.train:bench_train",
}
"""Name to module:function, imported only when asked for."""


def bench_compress(settings: o.Bench) -> list[Ratio]:
    source = resolve_model("minilm")
    task = load_task("glue/SST-2", data=settings.data) if settings.data else load_task()
    encoded = encode(task.splits["test"], load_tokenizer(source), max_length=PADDED_LENGTH)
    network = load_supernet(source, labels=task.labels, seed=settings.seed)
    return [
        *evaluation_ratios(network, encoded, settings),
        *step_ratios(network, encoded, settings),
        *extracted_ratios(network, settings),
    ]


def evaluation_ratios(network: PrunedNetwork, encoded: Encoded, settings: o.Bench) -> list[Ratio]:
    """Evaluating random SMALL sub-networks: sliced and bucketed against masked, bucketed and padded to 128."""
    some = np.random.default_rng(settings.seed).permutation(len(encoded))[: settings.rows]
    part = encoded_part(encoded, some)
    bucketed = evaluation_batches(part, tokens=EVALUATION_TOKENS)
    padded = [padded_batch(part, start) for start in range(0, len(part), PADDED_BATCH)]
    space = subnet_space("small", anatomy(network.config))
    network.eval()

    def one_round(rng: np.random.Generator) -> dict[str, float]:
        keeps = [space.build(sample(space.choices, rng)) for _ in range(NETWORKS_PER_ROUND)]
        ways = {"sliced": (subnetwork, bucketed), "masked": (zeroed, bucketed), "padded": (zeroed, padded)}
        return {
            name: sum(seconds(partial(evaluate, network, way, keep, chosen)) for keep in keeps)
            for name, (way, chosen) in ways.items()
        }

    rounds = repeated("evaluation", one_round, settings)
    return [
        ratio("evaluation: masked and padded to 128 / sliced and bucketed", rounds, "padded", "sliced", ">= 12"),
        ratio("evaluation: masked and bucketed / sliced and bucketed", rounds, "masked", "sliced", ">= 3.5"),
    ]


def step_ratios(network: PrunedNetwork, encoded: Encoded, settings: o.Bench) -> list[Ratio]:
    """A `full` step in the SMALL space against an ordinary one, optimizer included, on the same batches."""
    space = subnet_space("small", anatomy(network.config))
    freeze_embeddings(network)
    updates = {"standard": plain_update(network, loss=task_loss), "full": supernet_step(network, space, o.Supernet())}
    optimizer = torch.optim.AdamW([p for p in network.parameters() if p.requires_grad], lr=0.0, fused=True)
    network.train()

    def one_round(rng: np.random.Generator) -> dict[str, float]:
        chosen = [batch for batch, _ in zip(batches(encoded, batch_size=32, rng=rng), range(8), strict=False)]
        return {
            name: sum(seconds(partial(step, update, batch, rng, optimizer)) for batch in chosen)
            for name, update in updates.items()
        }

    rounds = repeated("training steps", one_round, settings)
    return [ratio("training: full step / standard step", rounds, "full", "standard", "<= 1.8")]


def extracted_ratios(network: PrunedNetwork, settings: o.Bench, length: int = 64) -> list[Ratio]:
    """An extracted network with half the FLOPs against the original, in torch and in onnxruntime."""
    of = anatomy(network.config)
    whole, half = extract(network, of.full).eval(), extract(network, half_of(of, length)).eval()
    ids = torch.randint(1000, 20000, (1, length), generator=torch.Generator().manual_seed(settings.seed))
    found = []
    for runtime, prepare in RUNTIMES.items():
        calls = {"whole": prepare(whole, ids), "half": prepare(half, ids)}

        def one_round(rng: np.random.Generator, calls: dict[str, Callable[[], Any]] = calls) -> dict[str, float]:
            return {name: min(seconds(call) for _ in range(20)) for name, call in calls.items()}

        rounds = repeated(f"extracted, {runtime}", one_round, settings)
        found.append(ratio(f"half the FLOPs / original, {runtime}, batch 1", rounds, "half", "whole", "<= 0.58"))
    return found


def half_of(of: Any, length: int) -> SubnetSpec:
    """All layers with about half the heads and the number of units that makes half the FLOPs."""
    goal = flops(of, of.full, length=length) / 2
    heads = of.heads // 2
    units = next(
        u for u in range(of.units, 0, -1) if flops(of, (LayerSpec(heads, u),) * of.layers, length=length) <= goal
    )
    return (LayerSpec(heads, units),) * of.layers


def torch_call(network: PrunedNetwork, ids: torch.Tensor) -> Callable[[], Any]:
    mask = torch.ones_like(ids)

    def call() -> Any:
        with torch.inference_mode():
            return network(ids, mask)

    return call


def onnx_call(network: PrunedNetwork, ids: torch.Tensor) -> Callable[[], Any]:
    from archwright.exporting.onnx_file import load_onnx, write_onnx  # onnx takes a second to import
    from archwright.exporting.quiet_libraries import silenced

    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    with TemporaryDirectory() as folder, silenced():
        write_onnx(network, Path(folder), names=list(inputs))
        run = load_onnx(Path(folder) / "model.onnx")
    return lambda: run(inputs)


RUNTIMES: dict[str, Callable[[PrunedNetwork, torch.Tensor], Callable[[], Any]]] = {
    "torch": torch_call,
    "onnxruntime": onnx_call,
}


def step(update: Any, batch: Batch, rng: np.random.Generator, optimizer: torch.optim.Optimizer) -> None:
    update(batch, rng, 0.5)
    optimizer.step()
    optimizer.zero_grad()


@torch.no_grad()
def evaluate(network: PrunedNetwork, way: Any, keep: SubnetSpec, chosen: list[Batch]) -> None:
    with way(network, keep):
        for batch in chosen:
            network(**batch.inputs)


def encoded_part(encoded: Encoded, rows: Any) -> Encoded:
    """These rows alone."""
    pieces = [encoded.ids[encoded.offsets[r] : encoded.offsets[r + 1]] for r in rows]
    offsets = np.concatenate([[0], np.cumsum([len(piece) for piece in pieces])])
    return Encoded(np.concatenate(pieces), offsets, None, encoded.targets[rows], encoded.pad_id)


def padded_batch(encoded: Encoded, start: int) -> Batch:
    """Consecutive rows, padded to 128 tokens."""
    batch = batch_of(encoded, np.arange(start, min(start + PADDED_BATCH, len(encoded))))
    short = PADDED_LENGTH - batch.inputs["input_ids"].shape[1]
    inputs = {name: torch.nn.functional.pad(tensor, (0, short)) for name, tensor in batch.inputs.items()}
    return Batch(inputs, batch.targets, batch.rows)


def seconds(call: Callable[[], Any]) -> float:
    """Processor time of this thread, which does all the work: other programs on the machine do not count."""
    begun = thread_time()
    call()
    return thread_time() - begun


def repeated(
    title: str, one_round: Callable[[np.random.Generator], dict[str, float]], settings: o.Bench
) -> list[dict[str, float]]:
    """Seconds of every round after one that is thrown away."""
    rounds = []
    with progress(f"bench: {title}", settings.repeats + 1, "rounds") as bar:
        for index in range(settings.repeats + 1):
            rounds.append(one_round(np.random.default_rng((settings.seed, index))))
            bar.advance()
    return rounds[1:]


def ratio(name: str, rounds: list[dict[str, float]], above: str, below: str, target: str) -> Ratio:
    values = sorted(r[above] / r[below] for r in rounds)
    return Ratio(name, float(np.median(values)), values[0], values[-1], target)
