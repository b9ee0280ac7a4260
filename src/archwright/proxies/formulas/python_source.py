"""A formula as Python that runs without archwright; it may be given to `rank --proxy`."""

from archwright.errors import BadInput
from archwright.proxies.formulas.formula import Formula, fill_template
from archwright.proxies.formulas.inputs import FORMULA_INPUTS
from archwright.proxies.formulas.operations import BINARY, UNARY
from archwright.proxies.formulas.reductions import REDUCTIONS

FUNCTION = '''import math

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


def python_source(formula: Formula, name: str = "proxy") -> str:
    """Source of a function of a probe. Literal, in double precision: what is zero or constant by algebra is so but for
    rounding."""
    if formula.empty:
        raise BadInput("A formula with both branches pruned is no function; keep one of them.")
    sides = dict(zip(("left", "right"), formula.active, strict=False))
    branches = ""
    for side, branch in sides.items():
        steps = "".join(f"            x = {UNARY[operation].python}\n" for operation in branch.chain)
        branches += BRANCH.format(side=side, tensors=FORMULA_INPUTS[branch.input].python, steps=steps)
    means = [
        f"sum({side})" if FORMULA_INPUTS[branch.input].summed else f"sum({side}) / len({side})"
        for side, branch in sides.items()
    ]
    joined = fill_template(BINARY[formula.binary].python, x=f"({means[0]})", y=f"({means[-1]})")
    reduction = REDUCTIONS[formula.reduction].python
    if formula.factor:
        value = f"{FORMULA_INPUTS[formula.factor.input].python}[0]"
        for operation in formula.factor.chain:
            value = fill_template(UNARY[operation].python, x=f"({value})")
        reduction = f"({reduction}) * float({value})"
    return FUNCTION.format(
        name=name,
        text=str(formula),
        branches=branches.rstrip("\n"),
        present=" and ".join(sides),
        joined=joined if len(means) == 2 else means[0],
        reduction=reduction,
        passes=formula.passes,
    )
