"""`python -m experiments.speed compress`: evaluation, training steps and extracted networks."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from archwright.compression.supernet import supernet_step
from archwright.configs import compress as o
from archwright.data.batching import Batch, Encoded, batch_of, batches, encode, evaluation_batches
from archwright.data.public_data import resolve_model
from archwright.data.tasks.task import load_task
from archwright.data.text.tokenizer import load_tokenizer
from archwright.networks.linear_kernel import fast_linears
from archwright.networks.load import freeze_embeddings, load_supernet
from archwright.networks.pruned import PrunedNetwork
from archwright.search import sample
from archwright.spaces.subnetwork import subnet_space
from archwright.subnet.anatomy import read_anatomy
from archwright.subnet.extract import extract
from archwright.subnet.slicing import subnetwork, zeroed_subnetwork
from archwright.subnet.spec import LayerSpec, SubnetSpec, flops
from archwright.subnet.supernet import FixedTeacher, plain_update
from archwright.tasks.kind import EVALUATION_TOKENS
from archwright.training.losses import distillation, task_loss
from experiments.speed.ratios import BenchConfig, Ratio, ratio, repeated, seconds

PADDED_LENGTH, PADDED_BATCH = 128, 32
"""How the public code of the paper evaluates: batches of 32, every text padded to 128 tokens."""
NETWORKS_PER_ROUND = 6


def bench_compress(settings: BenchConfig) -> list[Ratio]:
    source = resolve_model("minilm")
    task = load_task("glue/SST-2", data=settings.data) if settings.data else load_task()
    encoded = encode(task.splits["test"], load_tokenizer(source), max_length=PADDED_LENGTH)
    network = load_supernet(source, labels=task.labels, seed=settings.seed)
    return [
        *evaluation_ratios(network, encoded, settings),
        *step_ratios(network, encoded, settings),
        *extracted_ratios(network, settings),
    ]


def evaluation_ratios(network: PrunedNetwork, encoded: Encoded, settings: BenchConfig) -> list[Ratio]:
    """Evaluating random SMALL sub-networks: sliced and bucketed against masked, bucketed and padded to 128.

    Linear layers of the first use whichever kernel is fast on this processor, as in `compress`; else torch's own.
    """
    some = np.random.default_rng(settings.seed).permutation(len(encoded))[: settings.rows]
    part = encoded_part(encoded, some)
    bucketed = evaluation_batches(part, tokens=EVALUATION_TOKENS)
    padded = [padded_batch(part, start) for start in range(0, len(part), PADDED_BATCH)]
    space = subnet_space("small", read_anatomy(network.config))
    network.eval()

    def one_round(rng: np.random.Generator) -> dict[str, float]:
        keeps = [space.build(sample(space.choices, rng)) for _ in range(NETWORKS_PER_ROUND)]
        ways = {
            "sliced": (subnetwork, bucketed, fast_linears),
            "slow": (subnetwork, bucketed, nullcontext),
            "masked": (zeroed_subnetwork, bucketed, nullcontext),
            "padded": (zeroed_subnetwork, padded, nullcontext),
        }
        return {
            name: sum(seconds(partial(evaluate, network, way, keep, chosen, linears)) for keep in keeps)
            for name, (way, chosen, linears) in ways.items()
        }

    rounds = repeated("evaluation", one_round, settings)
    return [
        ratio("evaluation: masked and padded to 128 / sliced and bucketed", rounds, "padded", "sliced", ">= 12"),
        ratio("evaluation: masked and bucketed / sliced and bucketed", rounds, "masked", "sliced", ">= 3.5"),
        ratio("evaluation: torch's own linear layers / those of compress", rounds, "slow", "sliced", ">= 1"),
    ]


def step_ratios(network: PrunedNetwork, encoded: Encoded, settings: BenchConfig) -> list[Ratio]:
    """A `full` step in the SMALL space, and one along the chain, against an ordinary one, on the same batches.

    The optimizer is included. The chain's answers of the teacher are there, as they are after the first pass over the
    rows; its layers count alike, because nothing was measured.
    """
    small, chain = (subnet_space(name, read_anatomy(network.config)) for name in ("small", "chain"))
    answers = torch.zeros(len(encoded), network.config.num_labels)
    teacher = FixedTeacher(lambda batch: answers[batch.rows], lambda logits, target: distillation(logits, target, 2.0))
    freeze_embeddings(network)
    updates = {
        "standard": plain_update(network, loss=task_loss),
        "full": supernet_step(network, small, o.SupernetOptions(strategy="full"), None, loss=task_loss),
        "chain": supernet_step(network, chain, o.SupernetOptions(), teacher, loss=task_loss),
    }
    optimizer = torch.optim.AdamW([p for p in network.parameters() if p.requires_grad], lr=0.0, fused=True)
    network.train()

    def one_round(rng: np.random.Generator) -> dict[str, float]:
        chosen = [batch for batch, _ in zip(batches(encoded, batch_size=32, rng=rng), range(8), strict=False)]
        return {
            name: sum(seconds(partial(step, update, batch, rng, optimizer)) for batch in chosen)
            for name, update in updates.items()
        }

    rounds = repeated("training steps", one_round, settings)
    return [
        ratio("training: full step / standard step", rounds, "full", "standard", "<= 1.8"),
        ratio("training: step along the chain / standard step", rounds, "chain", "standard", "<= 1.8"),
    ]


def extracted_ratios(network: PrunedNetwork, settings: BenchConfig, length: int = 64) -> list[Ratio]:
    """An extracted network with half the FLOPs against the original, in torch and in onnxruntime."""
    of = read_anatomy(network.config)
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
    from archwright.logs import silence_libraries

    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    with TemporaryDirectory() as folder, silence_libraries():
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
def evaluate(network: PrunedNetwork, way: Any, keep: SubnetSpec, chosen: list[Batch], linears: Any) -> None:
    with linears(), way(network, keep):
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
