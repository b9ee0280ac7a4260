"""A user's own proxy from a file."""

import pickle
from pathlib import Path

import pytest

from archwright.errors import BadInput
from archwright.probe import Probe, record
from archwright.proxies import PROXIES, Unscored, from_file
from tests.probe.toy import COUNTS, toy, toy_batch


@pytest.fixture(scope="module")
def probe() -> Probe:
    return record(toy(), toy_batch(), counts=COUNTS, passes=("forward", "loss", "inputs"), loss="electra")


GOOD = '''
import torch

def my_proxy(probe):
    """SNIP once more."""
    return sum((w.value * w.gradient).abs().sum() for w in probe.linears)

def free(probe):
    return len(probe.layers)

free.passes = ("forward",)
'''


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.py"
    path.write_text(text)
    return path


def test_a_proxy_from_a_file(tmp_path: Path, probe: Probe) -> None:
    proxy = from_file(f"{written(tmp_path, GOOD)}:my_proxy")
    assert proxy.measure(probe) == pytest.approx(PROXIES["snip"].measure(probe))
    assert (proxy.origin, proxy.description, proxy.gradient_free) == ("own", "SNIP once more.", False)
    assert pickle.loads(pickle.dumps(proxy)).measure(probe) == proxy.measure(probe)


def test_it_can_say_which_passes_it_needs(tmp_path: Path, probe: Probe) -> None:
    proxy = from_file(f"{written(tmp_path, GOOD)}:free")
    assert proxy.gradient_free and proxy.measure(probe) == 2


def test_its_source_is_enough(tmp_path: Path, probe: Probe) -> None:
    path = written(tmp_path, GOOD)
    sent = pickle.dumps(from_file(f"{path}:my_proxy"))
    path.unlink()
    proxy = pickle.loads(sent)
    assert proxy.name == "my_proxy" and proxy.measure(probe) > 0


BAD = {
    "def other(probe): return 1": "no function 'p'",
    "p = 3": "no function 'p'",
    "def p(): return 1": r"one argument, the probe, got \(\)",
    "def p(probe, more): return 1": r"one argument, the probe, got \(probe, more\)",
    "def p(probe) return 1": "cannot be run: SyntaxError",
    "import nowhere_to_be_found": "cannot be run: ModuleNotFoundError",
    "def p(probe): return 1\np.passes = ('los',)": "no pass 'los'",
}


@pytest.mark.parametrize(("text", "said"), BAD.items(), ids=BAD.values())
def test_a_bad_file_is_bad_input(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        from_file(f"{written(tmp_path, text)}:p")


@pytest.mark.parametrize("target", ["mine.py", ":p", "mine.py:"])
def test_the_function_must_be_named(target: str) -> None:
    with pytest.raises(BadInput, match=r"file\.py:function"):
        from_file(target)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        from_file(f"{tmp_path / 'none.py'}:p")


FAILING = {
    "1 / 0": "p raised ZeroDivisionError",
    "float('nan')": "score is nan",
    "float('inf')": "score is inf",
    "'high'": "must give a number, got str",
    "None": "must give a number, got NoneType",
    "probe.layers[0].attention[0].value": "must give a number, got Tensor",
}


@pytest.mark.parametrize(("expression", "said"), FAILING.items(), ids=FAILING)
def test_a_proxy_that_fails_is_unscored_with_the_reason(
    tmp_path: Path, probe: Probe, expression: str, said: str
) -> None:
    proxy = from_file(f"{written(tmp_path, f'def p(probe): return {expression}')}:p")
    with pytest.raises(Unscored, match=said):
        proxy.measure(probe)
