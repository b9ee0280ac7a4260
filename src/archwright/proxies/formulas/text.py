"""A formula as text that reads back, as LaTeX, and as Python that runs without us."""

import re
from dataclasses import replace

from archwright.errors import BadInput
from archwright.proxies.formulas.formula import Branch, Formula, alone
from archwright.proxies.formulas.inputs import SOURCES
from archwright.proxies.formulas.operations import BINARY, UNARY
from archwright.proxies.formulas.reductions import REDUCTIONS

SYMBOLS = {binary.symbol: name for name, binary in BINARY.items()}


def text(formula: Formula) -> str:
    """sum(square(inverse(H)) + frobenius(A)); a formula of one branch alone has no second one."""
    if formula.factor:
        return f"{text(replace(formula, factor=None))} * {branch_text(formula.factor)}"
    left, right = (branch_text(branch) for branch in formula.branches)
    if formula == alone(formula.left, formula.reduction):
        return f"{formula.reduction}({left})"
    return f"{formula.reduction}({left} {BINARY[formula.binary].symbol} {right})"


def branch_text(branch: Branch) -> str:
    found = branch.input
    for name in branch.chain:
        found = f"{name}({found})"
    return found


def read(given: str) -> Formula:
    """The formula of such a text; blanks around the binary operation are needed."""
    whole, _, factor = given.rpartition(" * ")
    if whole.endswith(")") and factor.count("(") == factor.count(")"):
        return replace(read(whole), factor=read_branch(factor.strip()))
    outer = re.fullmatch(r"\s*(\w+)\((.*)\)\s*", given)
    parts = outer[2].split() if outer else []
    if outer and len(parts) == 1:
        return alone(read_branch(parts[0]), outer[1])
    if outer and len(parts) == 3 and parts[1] in SYMBOLS:
        return Formula(read_branch(parts[0]), read_branch(parts[2]), SYMBOLS[parts[1]], outer[1])
    raise BadInput(f"A formula reads like 'sum(square(H) + frobenius(A))', got {given!r}.")


def read_branch(given: str) -> Branch:
    *outer, inner = given.split("(")
    name, closing = inner.rstrip(")"), inner.count(")")
    if closing != len(outer):
        raise BadInput(f"Brackets of {given!r} do not match; a branch reads like 'square(inverse(H))'.")
    return Branch(name, tuple(reversed(outer)))


def filled(template: str, **operands: str) -> str:
    """The template with operands for its letters x and y, where those stand alone."""
    return re.sub(r"(?<![a-zA-Z_\\])[xy](?![a-zA-Z_])", lambda found: operands[found[0]], template)


def latex(formula: Formula) -> str:
    parts = [branch_latex(branch) for branch in formula.kept]
    joined = filled(BINARY[formula.binary].latex, **dict(zip("xy", parts, strict=True))) if len(parts) == 2 else None
    body = joined or (parts[0] if parts else r"\varnothing")
    factor = rf" \cdot {branch_latex(formula.factor)}" if formula.factor else ""
    return rf"{REDUCTIONS[formula.reduction].latex} \left( {body} \right){factor}"


def branch_latex(branch: Branch) -> str:
    found = SOURCES[branch.input].latex
    for name in branch.chain:
        found = filled(UNARY[name].latex, x=found)
    return found


PYTHON = '''import math

import torch


def {name}(probe):
    """{text}"""
    terms = []
    for layer in probe.layers:
{branches}
        if {present}:
            terms.append({joined})
    return {reduction}


{name}.passes = {passes}
'''

BRANCH = """        {side} = []
        for x in {tensors}:
            x = x.double()
{steps}            {side}.append(float(x.mean()))
"""


def python(formula: Formula, name: str) -> str:
    """Literal, in double precision: what is zero or constant by algebra is so but for rounding."""
    if formula.empty:
        raise BadInput("A formula with both branches pruned is no function; keep one of them.")
    sides = dict(zip(("left", "right"), formula.kept, strict=False))
    means = [f"sum({side}) / len({side})" for side in sides]
    joined = filled(BINARY[formula.binary].python, x=f"({means[0]})", y=f"({means[-1]})")
    return PYTHON.format(
        name=name,
        text=str(formula),
        branches="".join(branch_python(side, branch) for side, branch in sides.items()).rstrip("\n"),
        present=" and ".join(sides),
        joined=joined if len(means) == 2 else means[0],
        reduction=reduction_python(formula),
        passes=formula.passes,
    )


def reduction_python(formula: Formula) -> str:
    found = REDUCTIONS[formula.reduction].python
    if formula.factor is None:
        return found
    value = f"{SOURCES[formula.factor.input].python}[0]"
    for name in formula.factor.chain:
        value = filled(UNARY[name].python, x=f"({value})")
    return f"({found}) * float({value})"


def branch_python(side: str, branch: Branch) -> str:
    steps = "".join(f"            x = {UNARY[name].python}\n" for name in branch.chain)
    return BRANCH.format(side=side, tensors=SOURCES[branch.input].python, steps=steps)
