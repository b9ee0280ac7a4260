"""What others install: wheel and sdist are built, installed into a fresh environment and run outside of this one."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.compression.runs import QUICK, words_of

ROOT = Path(__file__).parents[1]
DEPENDENCIES = sysconfig.get_paths()["purelib"]
"""Where what archwright needs is installed here; on PYTHONPATH it brings no editable checkout along."""


def run(*words: Any, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | more
    return subprocess.run(list(map(str, words)), cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Wheel and sdist, made by the build backend of pyproject.toml in an environment of its own."""
    place = tmp_path_factory.mktemp("build")
    run(sys.executable, "-m", "venv", place / "env", cwd=place)
    installed = run(place / "env" / "bin" / "pip", "install", "--quiet", "hatchling>=1.27,<2", cwd=place)
    if installed.returncode:
        pytest.skip("hatchling cannot be installed here: no package index")
    done = run(place / "env" / "bin" / "python", "-m", "hatchling", "build", "-d", place / "dist", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    (wheel,), (sdist,) = ((place / "dist").glob(pattern) for pattern in ("*.whl", "*.tar.gz"))
    return {"wheel": wheel, "sdist": sdist}


@pytest.mark.slow
def test_both_hold_everything_that_is_read(built: dict[str, Path]) -> None:
    """Templates, scripts and formulas lie beside the code; the mark of a typed package too."""
    source = ROOT / "src"
    wanted = {
        str(path.relative_to(source))
        for path in (source / "archwright").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(built["wheel"]) as wheel:
        assert wanted - set(wheel.namelist()) == set()
        (metadata,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
        assert b"Requires-Dist: torch" in wheel.read(metadata)
    with tarfile.open(built["sdist"]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {f"src/{name}" for name in wanted} | {"pyproject.toml", "README.md", "LICENSE"} <= names


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_installed_elsewhere_it_runs(kind: str, built: dict[str, Path], given: dict[str, Any], tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "env", cwd=tmp_path)
    bin_folder, see = tmp_path / "env" / "bin", {"PYTHONPATH": DEPENDENCIES, "HF_HUB_OFFLINE": "1"}
    installed = run(bin_folder / "pip", "install", "--quiet", "--no-deps", built[kind], cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    where = run(bin_folder / "python", "-c", "import archwright; print(archwright.__file__)", cwd=tmp_path, **see)
    assert where.stdout.startswith(str(tmp_path / "env")), where
    helped = run(bin_folder / "archwright", "--help", cwd=tmp_path, **see)
    assert helped.returncode == 0 and "compress" in helped.stdout
    if kind == "wheel":
        words = words_of("compress", **{**given, **QUICK, "trials": 2, "out": tmp_path / "run"})
        done = run(bin_folder / "archwright", *words, cwd=tmp_path, **see)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "run" / "report.html").exists() and "report: " in done.stdout
