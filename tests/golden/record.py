"""Writes all records anew: `python -m tests.golden.record [pytest options]`. Only when a change is meant."""

import os
import subprocess
import sys

from tests.golden.cli import ROOT

if __name__ == "__main__":
    words = [sys.executable, "-m", "pytest", "tests/golden", "-q", *sys.argv[1:]]
    sys.exit(subprocess.run(words, cwd=ROOT, env={**os.environ, "ARCHWRIGHT_RECORD": "1"}, check=False).returncode)
