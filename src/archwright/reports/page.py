"""Pages of sections with plots, tables, facts and text: one HTML file that opens from disk, or a page of `serve`.

Every report is a function from its document to a list of sections; `render_page` puts them into the one template
(templates/page.html) with the scripts and styles of static/. Text reaches the page escaped by the template, or as JSON
that the scripts turn into text, never into markup. Plots and other things that follow a reader's choices are
`Interactive`: the scripts draw them where the template left a place. A page that is served (`Site`) is made of the same
parts; it links to scripts and styles, and to the other pages, instead of holding them.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from archwright.reports.figures.panels import Figure
from archwright.reports.numbers import SPACE, fact
from archwright.reports.tables import ReportTable

Card = tuple[str, str, str]
"""Label, number, detail."""
PLOTLY = "plotly.min.js"


@dataclass(frozen=True)
class Interactive:
    """What a script draws: `drawing` is the name of a function in its table BLOCKS, `data` what it gets."""

    kind: ClassVar[str] = "interactive"

    drawing: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Site:
    """Where a served page stands: the other pages, and the address below which scripts and styles are."""

    links: Sequence[tuple[str, str, bool]]
    """Words, address, and whether it is the page that is shown."""
    assets: str
    data: Mapping[str, Any] = field(default_factory=dict)
    """Further JSON for the scripts, as `data.site`."""
    scripts: tuple[str, ...] = ()
    """Scripts of served pages only, after all others."""


@dataclass(frozen=True)
class Facts:
    """Small panels of terms and values, by the heading of each panel."""

    kind: ClassVar[str] = "facts"

    panels: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Text:
    """Paragraphs; a notice says what is missing, and what to do about it."""

    paragraphs: Sequence[str]
    kind: str = "text"


@dataclass(frozen=True)
class Picture:
    """An SVG image, and what it shows in words."""

    kind: ClassVar[str] = "picture"

    svg: str
    words: str


Block = Interactive | Facts | Text | Picture | ReportTable


@dataclass(frozen=True)
class Section:
    """A part of a page below its heading; `short` is what the table of contents calls it."""

    id: str
    title: str
    note: str
    blocks: Sequence[Block]
    short: str

    @property
    def interactive(self) -> dict[str, dict[str, Any]]:
        """What the scripts draw, by the id of its place."""
        return {
            f"{self.id}-{place}": {"kind": block.drawing, **block.data}
            for place, block in enumerate(self.blocks)
            if isinstance(block, Interactive)
        }


def section(name: str, title: str, note: str, *blocks: Block, short: str = "") -> Section:
    return Section(name, title, keep_percent(note), blocks, short or title)


def keep_percent(words: str) -> str:
    """Text in which no line ends between a number and its percent sign."""
    return words.replace(" %", f"{SPACE}%")


def plots(figures: Mapping[tuple[str, ...], Figure], *labels: str, drawing: str = "plots") -> Interactive:
    """One plot; the reader chooses one of several figures by its words, one for each label."""
    return Interactive(
        drawing, {"figures": [[list(words), figure] for words, figure in figures.items()], "labels": labels}
    )


def plot(figure: Figure) -> Interactive:
    return plots({(): figure})


def facts(panels: Mapping[str, Mapping[str, Any]]) -> Facts:
    return Facts({name: {str(term): fact(value) for term, value in pairs.items()} for name, pairs in panels.items()})


def text(*paragraphs: str) -> Text:
    return Text([keep_percent(words) for words in paragraphs])


def notice(*paragraphs: str) -> Text:
    return Text([keep_percent(words) for words in paragraphs], kind="notice")


def render_page(
    title: str,
    sections: Sequence[Section | None],
    *,
    command: str,
    lead: str,
    schema: str = "",
    cards: Sequence[Card] = (),
    tab: str = "",
    data: Mapping[str, Any] | None = None,
    template: str = "page.html",
    context: Mapping[str, Any] | None = None,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    explore: bool = False,
    plotly: bool = True,
    site: Site | None = None,
) -> str:
    """One HTML file.

    `command` stands above the title, `schema` (of the document, with a version if it has one) in the last line, `tab`
    is the title of the window if it differs. None among the sections is a section whose data is missing. `data` is
    further JSON for `scripts`, which come after base.js and blocks.js; `context` is for a template of its own.
    `explore`: the page has clouds of architectures, or plots to save. `site`: the page is served.
    """
    shown = [each for each in sections if each]
    blocks = {place: block for each in shown for place, block in each.interactive.items()}
    html = (
        template_environment()
        .get_template(template)
        .render(
            title=title,
            tab=tab or title,
            command=command,
            lead=lead,
            cards=cards,
            sections=shown,
            footer=f"{schema}.{'' if site else ' This file needs no network.'}" if schema else "",
            data=embed({"blocks": blocks, **(data or {}), **({"site": site.data} if site else {})}),
            styles=("base.css", *styles, *(("explore.css",) if explore else ()), *(("site.css",) if site else ())),
            scripts=(
                *("base.js", "blocks.js", *scripts, *(("explore.js",) if explore else ())),
                *(site.scripts if site else ()),
            ),
            plotly=plotly,
            site=site,
            **(context or {}),
        )
    )
    return html.encode("utf-8", "replace").decode("utf-8")


@cache
def template_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("archwright.reports"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.globals |= {"source": source, "script_bundle": script_bundle, "bundle_name": bundle_name}
    return environment


def source(name: str) -> Markup:
    """A script or style, such that nothing in it ends the element it stands in."""
    return Markup(re.sub(r"</(script|style)", r"<\\/\1", read_asset(name), flags=re.IGNORECASE))


def read_asset(name: str) -> str:
    """The text of a script or style of ours, or of plotly's script."""
    folder = files("plotly") / "package_data" if name == PLOTLY else files("archwright.reports") / "static"
    return folder.joinpath(name).read_text("utf-8")


def script_bundle(names: Sequence[str]) -> Markup:
    """The scripts of a page as one that leaves no names behind, and that starts the blocks at its end."""
    code = "\n".join(source(name) for name in names)
    return Markup(f'(() => {{\n"use strict";\n{code}\nstartBlocks();\n}})();')


def bundle_name(names: Sequence[str], end: str) -> str:
    """What a served page calls its scripts or styles together: base+blocks.js."""
    return "+".join(name.removesuffix(end) for name in names) + end


def embed(value: Any) -> Markup:
    """JSON that is safe between script tags, with null for every number JSON does not know."""
    code = json.dumps(replace_infinite(value), allow_nan=False, separators=(",", ":"))
    return Markup(code.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def replace_infinite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): replace_infinite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [replace_infinite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
