"""Small runs as a user starts them: in this process where that does not matter, in one of their own where it does."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from optuna.trial import TrialState
from sqlalchemy.exc import SQLAlchemyError
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

import archwright as aw
from archwright.cli.main import main
from archwright.search import config_of
from archwright.search.encoding import config_key, is_complete
from archwright.search.heartbeat import WORKER
from archwright.search.history import valid_trials
from archwright.store import RunFolder, open_study

ROOT = Path(__file__).parents[2]
SIZE = {"hidden_size": 48, "num_attention_heads": 4, "intermediate_size": 64, "num_hidden_layers": 3}
DISTIL_SIZE = {"dim": 48, "n_heads": 4, "hidden_dim": 64, "n_layers": 3}
POSITIONS = 66
SIZES: dict[str, dict[str, Any]] = {
    "bert": SIZE,
    "roberta": {**SIZE, "pad_token_id": 0, "type_vocab_size": 2},
    "distilbert": DISTIL_SIZE,
    "electra": {**SIZE, "embedding_size": 32},
}
GOOD, BAD = ("good", "great", "fine", "lovely", "bright"), ("bad", "awful", "poor", "dull", "weak")
PLAIN = ("the", "film", "is", "very", "story", "and", "with", "music", "old", "a", "new", "actor")
QUICK: dict[str, Any] = {
    "epochs": 1.0,
    "original_epochs": 1.0,
    "batch_size": 16,
    "trials": 6,
    "rounds": 3,
    "threads": 1,
    "max_length": 48,
}
"""Options of a run that takes about two seconds once torch is there."""


def saved_model(
    folder: Path, minilm: Path, family: str = "bert", *, head: Mapping[int, str] | None = None, **sizes: int
) -> Path:
    """A random checkpoint with MiniLM's tokenizer; with `head`, fine-tuned for these labels as far as it says."""
    tokenizer = AutoTokenizer.from_pretrained(minilm)
    words = {"vocab_size": len(tokenizer), "max_position_embeddings": POSITIONS, **SIZES.get(family, SIZE), **sizes}
    if head is not None:
        words |= {"id2label": dict(head), "label2id": {name: i for i, name in head.items()}}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        auto = AutoModel if head is None else AutoModelForSequenceClassification
        auto.from_config(CONFIG_MAPPING[family](**words)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def sentence(rng: np.random.Generator, words: tuple[str, ...]) -> str:
    filler = list(rng.choice(PLAIN, size=rng.integers(2, 9)))
    filler.insert(int(rng.integers(len(filler))), str(rng.choice(words)))
    return " ".join(filler)


def table_file(path: Path, rows: int = 90, *, seed: int = 0, labels: tuple[str, str] = ("bad", "good")) -> Path:
    """Sentences with one telling word each, as CSV, TSV or JSONL by the suffix; a second text and a number beside."""
    rng = np.random.default_rng(seed)
    lines = []
    for index in range(rows):
        kind = index % 2
        text, other = (sentence(rng, (BAD, GOOD)[kind]) for _ in range(2))
        lines.append({"text": text, "other": other, "label": labels[kind], "score": round(kind + rng.uniform(), 3)})
    path.write_text("".join(WRITERS[path.suffix](lines)))
    return path


def separated(mark: str) -> Callable[[list[dict[str, Any]]], list[str]]:
    return lambda lines: [mark.join(map(str, row)) + "\n" for row in [lines[0], *(r.values() for r in lines)]]


WRITERS: dict[str, Callable[[list[dict[str, Any]]], list[str]]] = {
    ".csv": separated(","),
    ".tsv": separated("\t"),
    ".jsonl": lambda lines: [json.dumps(line) + "\n" for line in lines],
}


def compressed(out: Path, **options: Any) -> Any:
    """A run by the Python API."""
    return aw.compress(**{**QUICK, **without_distillation(options), "out": out, **options})


def without_distillation(options: Mapping[str, Any]) -> dict[str, float]:
    """What keeps a search along the chain from training networks by themselves, which few tests are about."""
    shared = options.get("method", "weight-sharing") == "weight-sharing" and not options.get("compare")
    return {"distil_epochs": 0.0} if shared and "preset" not in options else {}


def words_of(command: str, *positional: Any, **options: Any) -> list[str]:
    """The command line with these options; `compress` trains no networks by themselves unless it is asked to."""
    options = {**(without_distillation(options) if command == "compress" else {}), **options}
    words = [command, *map(str, positional)]
    for name, value in options.items():
        option = name.replace("_", "-")
        flag = {True: [f"--{option}"], False: [f"--no-{option}"]}
        listed = ",".join(value) if isinstance(value, tuple) else str(value)
        words += flag[value] if isinstance(value, bool) else [f"--{option}", listed]
    return words


def process(words: list[str], **options: Any) -> "subprocess.Popen[str]":
    """`python -m archwright ...` as a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "preexec_fn": listen, **options}
    return subprocess.Popen([sys.executable, "-m", "archwright", *words], text=True, env=environment, **pipes)


def listen() -> None:
    """Ctrl-C counts in the new process, also when the tests run in the background, where shells switch it off."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def ended(words: list[str], timeout: float = 200, **options: Any) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the command."""
    running = process(words, **options)
    out, err = running.communicate(timeout=timeout)
    return running.returncode, out, err


def refusal(capfd: Any, words: list[str]) -> tuple[int, str]:
    """Exit code and the one line of a command that must not work, run through the same door in this process."""
    capfd.readouterr()
    code = main(words)
    out, err = capfd.readouterr()
    lines = [line for line in err.splitlines() if line.strip()]
    assert out == ""
    assert len(lines) == 1, err
    assert lines[0].startswith("archwright: ")
    return code, lines[0]


def study_of(run: Path, store: str | None = None) -> Any:
    import optuna

    number = len(json.loads((run / "run.json").read_text())["options"]["objectives"])
    return open_study(RunFolder(run), store, sampler=optuna.samplers.RandomSampler(), directions=["minimize"] * number)


def tried(study: Any, choices: Any) -> list[dict[str, Any]]:
    """Configs of the counted trials, in order; all of them told."""
    trials = valid_trials(study.get_trials(deepcopy=False))
    assert all(trial.state.is_finished() for trial in trials)
    return [config_of(choices, trial) for trial in trials]


def errors_of(run: Path, choices: Any, store: str | None = None) -> dict[str, float]:
    """Validation errors of the counted trials by config."""
    trials = valid_trials(study_of(run, store).get_trials(deepcopy=False))
    return {config_key(config_of(choices, trial)): trial.values[0] for trial in trials}


def workers_of(study: Any) -> dict[int, int]:
    """Process id -> number of trials it told."""
    done = [trial for trial in study.trials if trial.state is TrialState.COMPLETE]
    pids = [trial.user_attrs[WORKER]["pid"] for trial in done]
    return {pid: pids.count(pid) for pid in pids}


def stopped(study: Any, choices: Any, *workers: Any) -> Callable[[], bool]:
    """Stops each of them in the middle of a trial; True when all are."""
    left = list(workers)

    def attempt() -> bool:
        left[:] = [worker for worker in left if not caught(study, choices, worker)]
        return not left

    return attempt


def caught(study: Any, choices: Any, worker: Any) -> bool:
    """Whether the worker is in the middle of a trial; then it stays there."""
    if not running(study, choices, worker.pid):
        return False
    worker.send_signal(signal.SIGSTOP)
    hit = running(study, choices, worker.pid)
    if not hit:
        worker.send_signal(signal.SIGCONT)
    return hit


def running(study: Any, choices: Any, pid: int) -> bool:
    try:
        trials = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    except SQLAlchemyError:  # it was stopped while it wrote
        return False
    return any(t.user_attrs.get(WORKER, {}).get("pid") == pid and is_complete(choices, t) for t in trials)


def front_of(result: Mapping[str, Any]) -> list[tuple[dict[str, Any], float, float, int]]:
    """What must not depend on where a run was interrupted."""
    return [
        (e["config"], e["validation_error"], e["test_error"], e["nonembedding_parameters"]) for e in result["front"]
    ]


def left_over(run: Path) -> list[str]:
    """Files that only a command in the middle of its work should have."""
    found = [path.name for path in run.rglob("*") if path.name.startswith(".") or "checkpoint" in path.name]
    return sorted(name for name in found if name != ".lock")


def wait_for(condition: Callable[[], bool], seconds: float = 240, every: float = 0.005) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "what the test waits for did not happen"
        time.sleep(every)
