"""Our methods: `archwright compress` on the rows of a job, with the shared original and the same minutes.

`archwright` is the command with its defaults and --minutes; `archwright-defaults` has none and takes as long as it
takes; `archwright-recovered` trains the picks of that run by themselves (`select --recover-epochs`). Other methods are
`--method`. The answers of every member of the front are recorded, and which of them `archwright select --params` picks
for each size.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.peers.clock import use_clock
from experiments.peers.job import CLOCKS, Job, read_job

METHODS = {
    "archwright": [],
    "archwright-defaults": [],
    "archwright-latency": ["--objectives", "validation_error,latency_ms"],
    "layer-dropping": ["--method", "layer-dropping"],
    "retraining-free": ["--method", "retraining-free"],
    "in-place-teacher": ["--teacher", "in-place", "--strategy", "full"],
    "space-small": ["--space", "small"],
    "repair-none": ["--repair", "none"],
    "smallest-empty": [],
    "no-candidates": [],
    "no-distillation": ["--distil-epochs", "0"],
    "retraining-free-mask": ["--method", "retraining-free", "--repair", "mask"],
    "retraining-free-unrepaired": ["--method", "retraining-free", "--repair", "none"],
}
"""Name of a method here -> options of `archwright compress`; the last eight are without one part."""
RECOVER_EPOCHS = 3.0


def leave_out(part: str) -> None:
    """Takes a part out of the method that no option turns off."""
    from archwright.compression import supernet
    from archwright.compression.methods import candidates

    if part == "smallest-empty":  # the network without layers instead of a tenth of the whole
        supernet.SMALLEST = 0.0
    if part == "no-candidates":  # but for those that are distilled, which no-distillation leaves out
        candidates.PRUNED = ()
        candidates.half_depth = lambda space: {}


def run_ours(job: Job) -> None:
    from archwright.compression.budgets.minutes import LATENCY, TESTING
    from archwright.compression.methods import load_evaluator
    from archwright.compression.pipeline import run_compression
    from archwright.errors import BadInput
    from experiments.peers.original import compress_words, load_compress_config

    words = [*compress_words(job, job.out / "run"), *METHODS[job.method]]
    if job.method != "archwright-defaults":  # answering the test rows costs the other methods nothing either
        words += ["--minutes", str(job.minutes / (1 - TESTING - LATENCY))]
    run = run_compression(load_compress_config(words), lender=job.original / "run")
    evaluator = load_evaluator(run.folder)
    networks, logits, picks = [], {}, {}
    for entry in run.front:
        name = f"trial-{entry['trial']}"
        logits[name] = test_logits(evaluator.extract(entry["config"]), evaluator.context.task_data, job)
        networks.append(describe_entry(entry, name))
    for size in job.sizes:
        try:
            picks[str(size)] = f"trial-{run.select(params=f'{size}%').entry['trial']}"
        except BadInput:
            picks[str(size)] = None  # nothing on the front is so small
    result = run.result
    more = {key: result[key] for key in ("space", "strategy", "seconds", "seconds_by_phase", "trials") if key in result}
    job.save(networks, logits, picks=picks, environment=result["environment"], **more)


def recover_ours(job: Job) -> None:
    """The picks of `archwright-defaults`, each trained by itself."""
    import archwright as aw
    from archwright.compression.methods import load_evaluator
    from archwright.errors import BadInput
    from archwright.networks.load import load_saved_network

    run = aw.open_run(job.out.parent / "archwright-defaults" / "run")
    task_data, start = load_evaluator(run.folder).context.task_data, CLOCKS[job.clock]()
    networks, logits, picks = {}, {}, {}
    for size in job.sizes:
        try:
            entry = run.select(params=f"{size}%").entry
        except BadInput:
            picks[str(size)] = None  # nothing on the front is so small
            continue
        picks[str(size)] = name = f"trial-{entry['trial']}"
        if name not in networks:
            aw.select(run=run.folder.path, params=f"{size}%", recover_epochs=RECOVER_EPOCHS, threads=job.threads)
            network = load_saved_network(run.folder.recovered_network(entry["trial"])).eval()
            networks[name], logits[name] = describe_entry(entry, name), test_logits(network, task_data, job)
    spent = run.result["seconds"] + CLOCKS[job.clock]() - start
    job.save(list(networks.values()), logits, picks=picks, environment=run.result["environment"], spent=spent)


def run_ours_decoder(job: Job) -> None:
    """The same for SmolLM2; perplexities are those of the run itself, on the same blocks."""
    from archwright.compression.pipeline import run_compression
    from experiments.peers.original import load_compress_config

    words = [*job.facts()["words"], "--seed", str(job.seed), "--threads", str(job.threads)]
    words += ["--out", str(job.out / "run"), "--minutes", str(job.minutes), *METHODS[job.method]]
    run = run_compression(load_compress_config(words))
    original = {"name": "original, fine-tuned", "share": 1.0, "perplexity": run.result["original"]["test_error"]}
    networks = [
        {**describe_entry(entry, f"trial-{entry['trial']}"), "perplexity": entry["test_error"]} for entry in run.front
    ]
    job.save([original, *networks], {}, environment=run.result["environment"])


def test_logits(network: Any, task_data: Any, job: Job) -> np.ndarray:
    """In the order of the rows and of the labels that all methods use."""
    from archwright.objectives.error import map_logits

    labels = job.facts()["labels"]
    order = [task_data.task.labels.index(label) for label in labels] if labels else [0]
    answers = map_logits(network, task_data.test, None, lambda batch, logits: (batch.rows, logits[:, order].cpu()))
    rows = np.concatenate([rows for rows, _ in answers])
    return torch.cat([values for _, values in answers]).numpy()[np.argsort(rows)]


def describe_entry(entry: dict[str, Any], name: str) -> dict[str, Any]:
    """A member of the front as an entry of networks.json."""
    return {
        "name": name,
        "share": entry["nonembedding_share"],
        "layers": [list(counts) for counts in entry["keep"]],
        "validation_error": entry["validation_error"],
        "source": entry.get("source"),
    }


if __name__ == "__main__":
    job = read_job(Path(sys.argv[1]))
    use_clock(job.clock)
    leave_out(job.method)
    if job.task == "lm":
        run_ours_decoder(job)
    elif job.method == "archwright-recovered":
        recover_ours(job)
    else:
        run_ours(job)
