"""docs/proxies.md knows every proxy and every pass, and its demonstration runs."""

import re
from pathlib import Path

import pytest

from archwright.probe import PASSES
from archwright.proxies import PROXIES
from archwright.proxies.registry import SUMMED

DOCS = (Path(__file__).parents[2] / "docs" / "proxies.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in PROXIES if not name.endswith("_normalised")])
def test_every_proxy_has_a_row_that_is_up_to_date(name: str) -> None:
    row = re.findall(rf"^\| `{name}`.*$", DOCS, flags=re.MULTILINE)[-1]  # a pass may have the same name
    proxy = PROXIES[name]
    assert row.startswith(f"| `{name}` (+)") == (proxy in SUMMED)
    assert f"| {proxy.origin} | {proxy.citation} |" in row and f"| {', '.join(proxy.passes) or 'none'} |" in row
    assert proxy.description in row.replace("\\|", "|")


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_has_a_row(name: str) -> None:
    assert f"\n| `{name}` |" in DOCS


def test_the_demonstration_of_rounding_noise_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", DOCS, flags=re.DOTALL) if "LayerNorm" in block)
    exec(code, {})
    ones, exact, cube, same = (float(line.split()[-1]) for line in capsys.readouterr().out.splitlines())
    assert ones > 1e6 * exact and cube == pytest.approx(same, rel=1e-3)
