"""Memory of a network, measured: the bytes of its weights on disk, and the peak of one forward pass in a fresh process.

    python -m archwright.objectives.memory FOLDER TOKENS

is that process: what it prints is the report.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from archwright.errors import Failed
from archwright.logs import silence_libraries
from archwright.networks.pruned import PrunedNetwork

STATUS = Path("/proc/self/status")
UNITS = 1024
"""Bytes in the kB of /proc and of getrusage on Linux."""


class Memory(NamedTuple):
    """Bytes; lower is better."""

    disk: int
    """Of the file with the weights."""
    peak: int
    """Most resident memory while the network is loaded and answers one text, beyond `runtime`."""
    runtime: int
    """Resident memory of the process before it loads the network: Python, torch and its libraries."""
    length: int
    """Tokens of the text."""

    @property
    def most(self) -> int:
        """What a limit is about: the larger of disk and peak."""
        return max(self.disk, self.peak)


def measure_memory(network: PrunedNetwork, *, length: int) -> Memory:
    """Of this network: its weights are written to a file, and another process loads them and answers one text."""
    with TemporaryDirectory() as place:
        with silence_libraries():
            network.save_pretrained(place)
        disk = sum(file.stat().st_size for file in Path(place).glob("*.safetensors"))
        command = [sys.executable, "-m", "archwright.objectives.memory", place, str(length)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
        raise Failed(f"memory could not be measured: the process that loads the network ended with {last!r}.")
    return Memory(disk=disk, length=length, **json.loads(ended.stdout.splitlines()[-1]))


def measure_peak(load: Callable[[], Callable[[], Any]]) -> dict[str, int]:
    """Resident bytes of this process before `load`, and the most beyond them until what it returns was called once."""
    before = resident("VmRSS")
    forget_peak()
    load()()
    return {"runtime": before, "peak": max(0, resident("VmHWM") - before)}


def resident(key: str) -> int:
    """Bytes of this process: VmRSS now, VmHWM at most so far."""
    if STATUS.exists():
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{key}:"))
        return int(line.split()[1]) * UNITS
    import resource  # other systems know the peak only, which imports have hardly raised

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * UNITS


def forget_peak() -> None:
    """The peak begins anew from here on, where the system can do that."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def report_peak(folder: Path, length: int) -> dict[str, int]:
    """Of the network in this folder on one text of so many tokens, one thread, as this process sees it."""
    import numpy as np
    import torch

    from archwright.networks.load import load_saved_network
    from archwright.objectives.latency import random_inputs

    torch.set_num_threads(1)

    def load() -> Callable[[], Any]:
        network = load_saved_network(folder)
        inputs = random_inputs(network, batch=1, length=length, rng=np.random.default_rng(0))

        def answer() -> Any:
            with torch.inference_mode():
                return network(**inputs)

        return answer

    return measure_peak(load)


if __name__ == "__main__":
    print(json.dumps(report_peak(Path(sys.argv[1]), int(sys.argv[2]))))
