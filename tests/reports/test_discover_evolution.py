"""Pages of evolution: curves, ablations, the tree of a formula and the family of the best, from searches of seconds."""

import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

from archwright.discovery.evolution import EvolutionResult, EvolutionSettings, evolve, search_randomly
from archwright.discovery.evolution_runs import compare_searches, summarise_ablation
from archwright.discovery.fitness import FitnessFunction
from archwright.proxies.formulas.formula import parse
from archwright.reports.discover.evolution import curves_by_evaluation, evolution_sections, family_section
from archwright.reports.discover.formula_tree import (
    BOTH,
    FIRST,
    NEW,
    SECOND,
    family_svg,
    formula_nodes,
    formula_svg,
    part_origins,
)
from archwright.reports.discover.page import render_discover_page
from archwright.reports.page import Text
from archwright.reports.tables import ReportTable
from archwright.spaces.formulas import FormulaSpace
from tests.discovery import toys

SPACE = FormulaSpace(2, toys.INPUTS)
SEARCHES = {
    "evolution with PPS": (evolve, True),
    "evolution without PPS": (evolve, False),
    "random search": (search_randomly, False),
}


def run(search: Any, seed: int, **changes: Any) -> EvolutionResult:
    table, folded = toys.toy_table(SPACE), toys.toy_rows()
    chosen = EvolutionSettings(**{"generations": 60, "population": 12, "parents": 0.25, "sample": 0, **changes})
    judge = FitnessFunction(table, folded, folded.search_sets[-1], chosen.pps)
    found: EvolutionResult = search(SPACE, judge, chosen, np.random.default_rng(seed))
    return found


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    curves = {name: [run(search, seed, pps=pps) for seed in range(3)] for name, (search, pps) in SEARCHES.items()}
    shares = {"10%": [run(evolve, 0, distinct=True)]}
    sizes = {str(size): [run(evolve, seed, population=size) for seed in range(3)] for size in (8, 12, 20)}
    best = curves["evolution with PPS"][0].best[0]
    return {
        "schema": "archwright/discover/1",
        "benchmark": "nas-bert",
        "evolution": {name: [one.as_dict() for one in runs] for name, runs in curves.items()},
        "comparison": compare_searches(curves, "random search"),
        "on_all_rows": {name: [one.curve[-1] for one in runs] for name, runs in curves.items()},
        "exhaustive_best": {"fitness": 0.9, "size": 3, "formula": "sum(A)"},
        "ablation": {
            name: {value: summarise_ablation(runs) for value, runs in studies.items()}
            for name, studies in {"population": sizes, "unary": sizes, "distinct, parents": shares}.items()
        },
        "best": [{"formula": best[2], "json": parse(best[2]).as_json(), "size": best[1]}],
    }


def test_every_section_is_there(document: dict[str, Any]) -> None:
    found = {part.id: part for part in evolution_sections(document) if part}
    assert found.keys() >= {"tree", "curves", "ablations"}
    tables = [block for block in found["ablations"].blocks if isinstance(block, ReportTable)]
    assert [len(block.rows) for block in tables] == [3, 3, 1]
    page = render_discover_page(document)
    assert "Figure 13 and Table 5" in page and "minus random search" in page


def test_nothing_is_shown_of_what_is_not_there() -> None:
    assert evolution_sections({}) == [None] * 4


def test_curves_by_different_formulas_end_where_the_first_run_does(document: dict[str, Any]) -> None:
    runs = document["evolution"]["evolution with PPS"]
    x, curves = curves_by_evaluation(runs)
    assert x[-1] == min(one["evaluations"][-1] for one in runs)
    shortest = min(runs, key=lambda one: one["evaluations"][-1])
    assert curves[runs.index(shortest), -1] == shortest["curve"][-1]


@pytest.mark.parametrize(
    "text", ["sum(sqrt(A) * frobenius(zscore(J)))", "sum(exp(A) - prune(J))", "sum(A) * log(n_depth)"]
)
def test_a_tree_has_every_part(text: str) -> None:
    drawn = ET.fromstring(formula_svg(parse(text).as_json(), text))
    words = [one.text for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
    known = {name for name in re.findall(r"\w+", text) if name not in ("sum", "prune", "J", "log", "n_depth")}
    assert known <= {str(word) for word in words} and "sum over layers" in words
    boxes = [(one.get("x"), one.get("y")) for one in drawn.iter("{http://www.w3.org/2000/svg}rect")]
    assert len(set(boxes)) == len(boxes) == len(words)  # nothing lies on top of another
    high = float(str(drawn.get("height")))
    assert all(0 <= float(str(y)) < high for _, y in boxes)


def test_a_child_is_coloured_by_where_its_parts_come_from() -> None:
    one, other, crossed, child = (
        parse(text).as_json()
        for text in ("sum(exp(A) + log(J))", "sum(sqrt(A) - abs(S))", "sum(sqrt(A) + abs(S))", "sum(sqrt(A) + relu(S))")
    )
    found = part_origins(crossed, [one, other], 2)
    assert (found["binary"], found["left 0"], found["left input"], found["right input"]) == (
        FIRST,
        SECOND,
        BOTH,
        SECOND,
    )
    assert set(part_origins(one, [one, other], 0).values()) == {FIRST}
    drawn = family_svg([one, other], crossed, child, "family")
    assert drawn.count('class="new"') == 1 and f'fill="{NEW}"' in drawn
    assert all(f">{words}</text>" in drawn for words in ("one parent", "the other parent", "crossover", "mutation"))
    assert formula_nodes(child)["right 0"] == "relu"


def test_the_family_is_that_of_the_best(document: dict[str, Any]) -> None:
    families = [one["family"] for runs in document["evolution"].values() for one in runs if one["family"]]
    born = [one for one in families if one["parents"]]
    assert born and all(one["child"]["fitness"] > max(of["fitness"] or -1 for of in one["parents"]) for one in born)
    made = family_section(document)
    assert made and isinstance(made.blocks[1], Text)
    assert any(one["child"]["formula"] in made.blocks[1].paragraphs[0] for one in born)
