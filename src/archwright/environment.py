"""What a number depends on besides its seed: commit, versions, processor."""

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch
import transformers


def environment() -> dict[str, Any]:
    """What a number depends on besides the seed."""
    return {
        "commit": commit(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "transformers": transformers.__version__,
        "cpu": cpu(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def commit() -> str | None:
    """The commit of the checkout that this code runs from, marked when changed since; None for an installed package."""
    package = Path(__file__).parent
    root = git(package, "rev-parse", "--show-toplevel")
    if root is None or Path(root) / "src" / "archwright" != package.resolve():
        return None
    changed = git(package, "status", "--porcelain", "--", str(package))
    return f"{git(package, 'rev-parse', '--short', 'HEAD')}{'-dirty' if changed else ''}"


def git(folder: Path, *words: str) -> str | None:
    """What git prints in this folder; None without git or a repository."""
    try:
        process = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return None if process.returncode else process.stdout.strip()


def cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def available_memory() -> int | None:
    """Bytes that can be used without swapping (Linux); None where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    return None if found is None else 1024 * int(found)
