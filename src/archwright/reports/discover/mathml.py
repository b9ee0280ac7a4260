"""Formulas as mathematics: MathML made of the formula's tree, which browsers set themselves, without any script.

Names come from documents, so each is escaped; one that has no notation here is written as a function of its operand.
"""

import html
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from markupsafe import Markup

Formula = Mapping[str, Any]
"""As `Formula.as_json` writes it."""
SIDES = ("left", "right")
APPLY = "<mo>\N{FUNCTION APPLICATION}</mo>"


class Term(NamedTuple):
    """MathML of one operand."""

    markup: str
    atomic: bool = True
    """Needs no brackets, whatever stands beside it."""


def tag(name: str, *parts: str, **attributes: str) -> str:
    written = "".join(f' {key}="{html.escape(value)}"' for key, value in attributes.items())
    return f"<{name}{written}>{''.join(parts)}</{name}>"


def row(*parts: str) -> str:
    return tag("mrow", *parts)


def identifier(name: str) -> str:
    return tag("mi", html.escape(name))


def operator(sign: str, **attributes: str) -> str:
    return tag("mo", html.escape(sign), **attributes)


def fence(markup: str, left: str = "(", right: str = ")") -> str:
    return row(operator(left), markup, operator(right))


def bracketed(term: Term) -> str:
    """In brackets unless it is plain without them."""
    return term.markup if term.atomic else fence(term.markup)


def apply(name: str, term: Term) -> Term:
    return Term(row(identifier(name), APPLY, fence(term.markup)))


def norm(term: Term, which: str) -> Term:
    return Term(tag("msub", fence(term.markup, "\N{DOUBLE VERTICAL LINE}", "\N{DOUBLE VERTICAL LINE}"), which))


def function(name: str) -> Callable[[Term], Term]:
    return lambda term: apply(name, term)


MINUS = operator("\N{MINUS SIGN}", form="prefix")
UNARY: dict[str, Callable[[Term], Term]] = {
    "log": function("log"),
    "abslog": lambda term: Term(fence(apply("log", term).markup, "|", "|")),
    "abs": lambda term: Term(fence(term.markup, "|", "|")),
    "square": lambda term: Term(tag("msup", bracketed(term), tag("mn", "2")), atomic=False),
    "exp": lambda term: Term(tag("msup", identifier("e"), row(term.markup)), atomic=False),
    "zscore": function("z"),
    "relu": function("ReLU"),
    "inverse": lambda term: Term(tag("mfrac", tag("mn", "1"), row(term.markup)), atomic=False),
    "frobenius": lambda term: norm(term, identifier("F")),
    "norm_sum": function("norm_sum"),
    "l1": lambda term: norm(term, tag("mn", "1")),
    "softmax": function("softmax"),
    "sigmoid": function("sigmoid"),
    "log_softmax": lambda term: Term(row(identifier("log"), APPLY, apply("softmax", term).markup), atomic=False),
    "sqrt": lambda term: Term(tag("msqrt", term.markup)),
    "negate": lambda term: Term(row(MINUS, bracketed(term)), atomic=False),
    "minmax": function("minmax"),
    "average": lambda term: Term(
        tag("mover", row(term.markup), operator("\N{OVERLINE}", stretchy="true"), accent="true")
    ),
    "std": function("\N{GREEK SMALL LETTER SIGMA}"),
    "no_op": lambda term: term,
    "prune": lambda term: Term(operator("\N{EMPTY SET}")),
}
BINARY = {
    "add": "+",
    "sub": "\N{MINUS SIGN}",
    "mul": "\N{MULTIPLICATION SIGN}",
    "hadamard": "\N{CIRCLED DOT OPERATOR}",
}
SUM = tag("munder", operator("\N{N-ARY SUMMATION}", movablelimits="false"), identifier("l"))
REDUCTIONS = {
    "sum": SUM,
    "mean": row(tag("mfrac", tag("mn", "1"), identifier("L")), SUM),
    "last": tag("msub", identifier("last"), identifier("l")),
    "largest": tag("msub", identifier("largest"), identifier("l")),
    "logsum": row(SUM, identifier("slog"), APPLY),
    "first": tag("msub", identifier("first"), identifier("l")),
    "but_last": tag(
        "munder",
        operator("\N{N-ARY SUMMATION}", movablelimits="false"),
        row(identifier("l"), operator("<"), identifier("L")),
    ),
    "rising": row(SUM, tag("mfrac", identifier("l"), identifier("L"))),
    "falling": row(
        SUM,
        tag(
            "mfrac",
            row(identifier("L"), operator("\N{MINUS SIGN}"), identifier("l"), operator("+"), tag("mn", "1")),
            identifier("L"),
        ),
    ),
}
COUNTED = {"heads": "h", "linears": "k", "width": "d", "inner": "f", "weights": "w"}
"""Numbers of one layer, as the documentation writes them."""
BUT_LAST_FFN, ADDED = "_but_last_ffn", "_sum"
THETA, PARTIAL = "\N{GREEK SMALL LETTER THETA}", "\N{PARTIAL DIFFERENTIAL}"
LPZERO = ("A", "J", "G", "H", "W", "S")
PARTS = {"a": "attention", "f": "ffn", "": "linears"}


def input_term(name: str) -> Term:
    """theta with an index for LPZero's inputs, W, G and their product of a part of the layer, x and its gradient."""
    if name.endswith(ADDED):
        return Term(row(operator("\N{N-ARY SUMMATION}"), input_term(name.removesuffix(ADDED)).markup), atomic=False)
    if name.endswith(BUT_LAST_FFN):  # of the last layer without its FFN
        plain = input_term(name.removesuffix(BUT_LAST_FFN)).markup
        return Term(tag("msup", plain, operator("\N{MINUS SIGN}")))
    if name.startswith("l_"):
        count = name.removeprefix("l_")
        where = identifier("l")
        if count not in COUNTED:
            where = row(where, operator(","), tag("mtext", html.escape(count)))
        return Term(tag("msub", identifier(COUNTED.get(count, "w")), where))
    if name in LPZERO:
        return Term(tag("msub", identifier(THETA), identifier(name)))
    stem = name.rstrip("af") if name[:1] in "WG" else ""
    if stem in ("W", "G", "WG") and name.removeprefix(stem) in PARTS:
        product = fence(row(identifier("W"), operator("\N{CIRCLED DOT OPERATOR}"), identifier("G")))
        where = tag("mtext", PARTS[name.removeprefix(stem)])
        return Term(tag("msub", product if stem == "WG" else identifier(stem), where))
    letter = name[-1:]
    if letter.isalpha() and name == f"d{letter}":
        return Term(row(identifier(PARTIAL), identifier(letter)))
    if letter.isalpha() and name == f"{letter}d{letter}":
        gradient = row(identifier(PARTIAL), identifier(letter))
        return Term(row(identifier(letter), operator("\N{CIRCLED DOT OPERATOR}"), gradient), atomic=False)
    if name.startswith("n_"):
        return Term(tag("msub", identifier("n"), tag("mtext", html.escape(name.removeprefix("n_")))))
    return Term(identifier(name))


def branch_term(branch: Formula) -> Term:
    term = input_term(str(branch["input"]))
    for name in branch["chain"]:
        term = UNARY.get(str(name), function(str(name)))(term)
    return term


def formula_mathml(formula: Formula, words: str) -> Markup:
    """The formula, set as in a line of its own; `words` is the same as plain text, for who copies or cannot see it."""
    terms = [branch_term(formula[side]) for side in SIDES if "prune" not in formula[side]["chain"]]
    body = terms[0].markup if terms else operator("\N{EMPTY SET}")
    if len(terms) == 2:
        sign = BINARY.get(str(formula["binary"]), str(formula["binary"]))
        left, right = (bracketed(term) if starts_with_minus(term) else term.markup for term in terms)
        body = row(terms[0].markup if sign in (BINARY["add"], BINARY["sub"]) else left, operator(sign), right)
    name = str(formula.get("reduction", "sum"))
    whole = row(REDUCTIONS.get(name, identifier(name)), fence(body))
    if factor := formula.get("factor"):
        whole = row(whole, operator("\N{DOT OPERATOR}"), bracketed(branch_term(factor)))
    return Markup(tag("math", whole, displaystyle="true", alttext=words))


def starts_with_minus(term: Term) -> bool:
    return term.markup.startswith(f"<mrow>{MINUS}")
