"""Formulas as MathML: every part of the language has a notation, and nothing of a document becomes markup."""

from typing import Any
from xml.etree import ElementTree

import pytest

from archwright.proxies.formulas import formula as formulas
from archwright.proxies.formulas.inputs import FORMULA_INPUTS
from archwright.proxies.formulas.operations import BINARY, UNARY
from archwright.proxies.formulas.reductions import REDUCTIONS
from archwright.reports.discover import mathml
from archwright.reports.discover.mathml import formula_mathml
from archwright.reports.discover.page import formula_cell

HOSTILE = "</math><img src=x onerror=alert(1)>"


def markup_of(text: str) -> str:
    return str(formula_mathml(formulas.parse(text).as_json(), text))


def words_of(text: str) -> str:
    """What is read from left to right, whatever its place above or below the line."""
    return "".join(ElementTree.fromstring(markup_of(text)).itertext()).translate({0x2061: None, 0x2212: "-"})


def test_every_name_of_the_language_has_a_notation() -> None:
    assert set(mathml.UNARY) == set(UNARY)
    assert set(mathml.BINARY) == set(BINARY)
    assert set(mathml.REDUCTIONS) == set(REDUCTIONS)


@pytest.mark.parametrize("name", FORMULA_INPUTS)
def test_inputs_are_written_as_in_latex(name: str) -> None:
    """The same letters in the same order as the record has them in LaTeX."""
    latex = FORMULA_INPUTS[name].latex
    for command, letter in {
        r"\theta": "θ",
        r"\partial": "∂",
        r"\odot": "⊙",
        r"\mathrm": "",
        r"\textstyle": "",
        r"\sum": "∑",
    }.items():
        latex = latex.replace(command, letter)
    expected = "".join(letter for letter in latex if letter not in "_{}^ ")
    shown = "".join(ElementTree.fromstring(mathml.input_term(name).markup).itertext()).replace("\N{MINUS SIGN}", "-")
    assert shown == expected


def test_a_formula_reads_as_mathematics() -> None:
    assert words_of("mean(square(inverse(H)) + frobenius(A))") == "1L∑l((1θH)2+‖θA‖F)"
    assert words_of("sum(W) * n_depth") == "∑l(θW)⋅ndepth"
    assert words_of("logsum(sqrt(G) .* negate(S))") == "∑lslog(θG⊙(-θS))"
    assert words_of("sum(negate(G) - abs(S))") == "∑l(-θG-|θS|)"
    assert words_of("rising(log(l_weights_but_last_ffn))") == "∑llL(log(wl-))"
    assert words_of("but_last(W_sum)") == "∑l<L(∑θW)"


def test_fractions_roots_and_powers_are_elements_of_their_own() -> None:
    tree = ElementTree.fromstring(markup_of("sum(square(inverse(H)) + sqrt(average(A)))"))
    kinds = {element.tag for element in tree.iter()}
    assert {"mfrac", "msup", "msqrt", "mover", "munder", "msub"} <= kinds
    assert tree.get("alttext") == "sum(square(inverse(H)) + sqrt(average(A)))" and tree.get("displaystyle") == "true"
    base, power = tree.iter("msup").__next__()
    assert "".join(base.itertext()) == "(1θH)" and power.text == "2"


def test_names_of_a_document_are_text() -> None:
    branch: dict[str, Any] = {"input": HOSTILE, "chain": [HOSTILE]}
    hostile = {"left": branch, "right": branch, "binary": HOSTILE, "reduction": HOSTILE, "factor": branch}
    markup = str(formula_mathml(hostile, HOSTILE + '" onclick="x'))
    tree = ElementTree.fromstring(markup)
    assert {element.tag for element in tree.iter()} <= {"math", "mrow", "mi", "mo"}
    assert not [name for element in tree.iter() for name in element.attrib if name.startswith("on")]


@pytest.mark.parametrize("damaged", [None, {}, {"left": {}}, {"left": 3, "right": 4}, [1]])
def test_a_formula_whose_tree_cannot_be_read_stays_text(damaged: Any) -> None:
    cell = formula_cell({"formula": "sum(A)", "json": damaged})
    assert cell.text == "sum(A)" and cell.math is None
