"""The pages of `serve`, made of the parts of `reports`."""

import math
import shlex
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from archwright.errors import Failed
from archwright.reports.compress.compare import render_compare_page
from archwright.reports.compress.network import loss_parts, network_table
from archwright.reports.compress.page import render_compress_page
from archwright.reports.compress.summary import (
    error_words,
    export_options,
    keep_words,
    latency_setup,
    loss,
    run_words,
    shared_error,
)
from archwright.reports.design import render_design_page
from archwright.reports.discover.page import render_discover_page
from archwright.reports.numbers import error_format, fact, number, percent
from archwright.reports.page import (
    PLOTLY,
    Block,
    Site,
    facts,
    notice,
    read_asset,
    render_page,
    script_bundle,
    section,
    text,
)
from archwright.reports.rank.page import render_rank_page
from archwright.reports.tables import Cell, Column, ReportTable
from archwright.reports.train import render_train_page
from archwright.store import RunFolder
from archwright.tasks import TASK_KINDS
from archwright.version import __version__
from archwright.web.comparing import compare_sections
from archwright.web.folder import (
    DAMAGED,
    FINISHED,
    UNEXPECTED,
    ServedFolder,
    given_options,
    kind_of,
    settings_of,
    shown_options,
    state_of,
    summarize,
)
from archwright.web.live import LiveRuns
from archwright.web.proxies import document_titles, proxy_sections

FORMATS = {"hf": "Hugging Face", "compact": "compact", "onnx": "ONNX"}
"""What the page offers to export to, and in words."""
RECENT = 0.4
"""Seconds for which the list of runs is not made anew."""
DESIGN_WORDS = ("space", "sampler")
"""What a design says in words, not in numbers."""
DESIGNS = "Each has a page: the network block by block, what every layer adds to its score, and the walk of the search."
RUNS_LEAD = "Runs below this folder, newest first. A running search shows itself; tick runs to see them side by side."


def asset_version() -> str:
    """Changes when a script or style does, so that browsers may keep them for good."""
    static = files("archwright.reports") / "static"
    digest = sha256(__version__.encode())
    for name in sorted(entry.name for entry in static.iterdir()):
        digest.update(static.joinpath(name).read_bytes())
    return digest.hexdigest()[:12]


def address(*parts: object) -> str:
    """A path of ours; slashes in the last part stay, everything else is quoted."""
    *first, last = (str(part) for part in parts)
    return "/" + "/".join([*(quote(part, safe="") for part in first), quote(last, safe="/")])


@dataclass
class RunRows:
    """The list of runs as it was a moment ago."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    read: float = -math.inf
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class Pages:
    """Renders every page of one served folder."""

    folder: ServedFolder
    live: LiveRuns
    allow_start: bool
    start_options: Sequence[Mapping[str, Any]] = ()
    version: str = field(default_factory=asset_version)
    _rows: RunRows = field(default_factory=RunRows)

    def site(self, current: str, *scripts: str, **data: Any) -> Site:
        links = {"Runs": "/", "Compare": "/compare", "Proxies": "/proxies", "Architectures": "/architectures"}
        links |= {"Start": "/start"} if self.allow_start else {}
        shown = [(words, where, words == current) for words, where in links.items()]
        return Site(shown, f"/assets/{self.version}/", data, ("site.js", *scripts))

    def runs(self) -> str:
        rows = self.run_rows()
        return render_page(
            "Runs",
            [],
            command=f"archwright {__version__}",
            lead=RUNS_LEAD if rows else "There is no run below this folder yet.",
            template="runs.html",
            context={"example": "archwright compress --out runs/first"},
            data={"runs": rows},
            scripts=("picture.js",),
            plotly=False,
            site=self.site("Runs", "runs.js", allow_start=self.allow_start),
        )

    def run_rows(self) -> list[dict[str, Any]]:
        """The list of runs as the page and the API have it, with what a search that is not finished has so far."""
        with self._rows.lock:  # many who ask at the same moment get the same
            if time.monotonic() - self._rows.read > RECENT:
                rows = [summarize(self.folder, name) for name in self.folder.run_names()]
                for row in rows:
                    if row["state"] not in (FINISHED, DAMAGED) and row.get("kind") == "compress":
                        row |= self.live.get(self.folder.run(row["name"])).summary()
                self._rows.rows = sorted(rows, key=lambda row: -row.get("changed", 0.0))
                self._rows.read = time.monotonic()
            return self._rows.rows

    def run(self, name: str) -> str:
        run = self.folder.run(name)
        state, reason = state_of(run)
        if state == DAMAGED:
            return self.damaged(name, reason)
        if state != FINISHED:
            searches = kind_of(settings_of(run)) == "compress"
            return self.live_run(name, run) if searches else self.working_run(name, run)
        result = run.note("result")
        site = self.site("Runs", run=name, state=state)
        command = str(result.get("schema", "")).split("/")[1:2]
        if command == ["compare"]:
            return render_compare_page(result, site=site)
        if command == ["train"]:
            return render_train_page(result, site=site)
        try:
            return render_compress_page(self.placed(result, run), site=self.run_site(name, state))
        except UNEXPECTED as error:
            return self.damaged(name, f"result.json is not what was written there ({type(error).__name__}).")

    def run_site(self, name: str, state: str, **live: Any) -> Site:
        data = {
            "run": name,
            "state": state,
            "network": address("network", "TRIAL", name),
            "compare": f"/compare?run={quote(name)}",
            "allow_start": self.allow_start,
            **live,
        }
        return self.site("Runs", "status.js", "live.js", **data)

    def placed(self, result: dict[str, Any], run: RunFolder) -> dict[str, Any]:
        """A result whose commands name the folder where the run lies now."""
        return {**result, "folder": str(run.path)}

    def live_run(self, name: str, run: RunFolder) -> str:
        live = self.live.get(run)
        version, page = live.version, live.page
        if page is None or page[0] != version:  # many who look at the same moment see the same page
            document = self.placed(live.document(), run)
            news = {**live.news(len(document["trials"])), "events": address("api", "events", name)}
            site = self.run_site(name, news["state"], live=news)
            live.page = page = (version, render_compress_page(document, site=site))
        return page[1]

    def working_run(self, name: str, run: RunFolder) -> str:
        """A training or a comparison of methods that is not finished: how far it is, its parts, and its options."""
        live, kind = self.live.get(run), kind_of(settings_of(run))
        news = {**live.news(0), "events": address("api", "events", name)}
        parts = {each: address("run", each) for each in self.folder.run_names() if each.startswith(f"{name}/")}
        return render_page(
            name,
            [section("options", "Its options", "", facts({"Options": given_options(run)}))],
            command=f"archwright {'train' if kind == 'train' else 'compress --compare'}",
            lead="It is not finished; what it has found is shown here when it is.",
            template="documents.html",
            context={"links": parts},
            scripts=("picture.js",),
            plotly=False,
            site=self.site("Runs", "status.js", "working.js", run=name, allow_start=self.allow_start, live=news),
        )

    def damaged(self, name: str, reason: str) -> str:
        blocks: list[Block] = [notice(reason or "Its files cannot be read."), text("Nothing else is affected by it.")]
        return render_page(
            name,
            [section("damaged", "This run is damaged", "", *blocks)],
            command="archwright serve",
            lead="It cannot be shown.",
            plotly=False,
            site=self.site("Runs"),
        )

    def network(self, name: str, trial: int) -> str | None:
        """The page of one sub-network; None when the run has no such member."""
        run = self.folder.run(name)
        state, reason = state_of(run)
        if state == DAMAGED:
            return self.damaged(name, reason)
        if state != FINISHED:
            return None
        try:
            result = self.placed(run.note("result"), run)
            member = next((each for each in result["front"] if each["trial"] == trial), None)
        except (*UNEXPECTED, Failed) as error:
            return self.damaged(name, f"result.json is not what was written there ({type(error).__name__}).")
        if member is None:
            return None
        errors = error_format(result)
        lost, around = loss_parts(result, member, shared_error(result, member))
        lead = (
            f"Keeps {percent(number(member, 'nonembedding_share'))} of the non-embedding parameters; its loss is {lost}"
        )
        shown = ("key", "word", "unit", "ticks", "scale")
        trials = [each["trial"] for each in result["front"]]
        at = trials.index(trial)
        beside = [trials[place] for place in (at - 1, at, at + 1) if 0 <= place < len(trials)]
        compared = "/compare?" + "&".join(f"network={quote(f'{each}:{name}', safe='')}" for each in beside)
        neighbours = {
            words: address("network", trials[place], name)
            for words, place in (("smaller", at - 1), ("larger", at + 1))
            if 0 <= place < len(trials)
        }
        select = (
            f"archwright select {run_words(result)} --params {100 * number_or(member, 'nonembedding_share', 1):.2f}%"
        )
        kind = result.get("kind")  # not in results of earlier versions
        ask = next((TASK_KINDS[name] for name in TASK_KINDS if name == kind), None)
        options = export_options(result)
        commands = {
            form: f"archwright export {run_words(result)} --trial {trial} --to {form}"
            for form in (*FORMATS, "onnx-int8")
        }
        commands["onnx-int8"] = commands["onnx"] + " --int8"
        return render_page(
            f"Sub-network of trial {trial}",
            [],
            command=f"{name} · {result['model']}, shrunk for {result['task']}",
            lead=f"{lead}{f' ({around})' if around else ''}: {error_words(result, member)}.",
            template="network.html",
            context={
                "table": network_table(result, member),
                "keeps": keep_words(member) if member.get("keep") else "",
                "neighbours": neighbours,
                "compare_address": compared,
                "run": name,
                "run_address": address("run", name),
                "formats": {**FORMATS, "onnx-int8": "ONNX, 8 bit"},
                "usual": options,
                "made_for": next((form for form in commands if commands[form].endswith(options)), "compact"),
                "setup": latency_setup(result),
                "select": select,
                "asked": ask.asked if ask else ("Text", "Second text, for tasks that have one"),
                "needs_second": ask is not None and ask.needs_second,
            },
            data={
                "member": {key: member.get(key) for key in ("trial", "keep", "config")},
                "heads": result.get("heads"),
                "units": result.get("units"),
                "error": {key: getattr(errors, key) for key in shown},
                "commands": commands,
            },
            scripts=("picture.js",),
            site=self.site("Runs", "subnet.js", run=name, trial=trial, exports=self.exports(run, trial)),
        )

    def exports(self, run: RunFolder, trial: int) -> list[dict[str, Any]]:
        """Exported folders of a sub-network that are whole."""
        found = []
        for folder in sorted((run.path / "export").glob(f"trial-{trial}-*")):
            if (folder / "parity.json").is_file() and folder.resolve().is_relative_to(self.folder.root):
                size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
                where = address("download", folder.name, self.folder.name_of(run.path))
                found.append({"name": folder.name, "bytes": size, "download": where})
        return found

    def compare(self, names: Sequence[str], networks: Sequence[tuple[int, str]]) -> str:
        finished = [row["name"] for row in map(self.row, self.folder.run_names()) if row.get("front")]
        results = {name: self.placed(self.result(name), self.folder.run(name)) for name in names if name in finished}
        options = {name: shown_options(self.folder.run(name)) for name in results}
        members = {
            (trial, name): self.placed(self.result(name), self.folder.run(name))
            for trial, name in networks
            if name in finished
        }
        sections = compare_sections(results, options, members)
        words = "Choose two runs or more, or sub-networks of them."
        absent = dict.fromkeys(name for name in (*names, *(name for _, name in networks)) if name not in finished)
        offered = results | {name: result for (_, name), result in members.items()}
        return render_page(
            "Compare",
            sections,
            command="archwright serve",
            lead="Fronts in one picture, numbers side by side, and what was asked for differently."
            if sections
            else words,
            template="compare.html",
            context={
                "choices": finished,
                "chosen": list(results),
                "absent": list(absent),
                "networks": {name: member_choices(result) for name, result in offered.items()},
                "ticked": [f"{trial}:{name}" for trial, name in members],
            },
            scripts=("picture.js",),
            site=self.site("Compare"),
        )

    def row(self, name: str) -> dict[str, Any]:
        return summarize(self.folder, name)

    def result(self, name: str) -> dict[str, Any]:
        return dict(self.folder.run(name).note("result") or {})

    def proxies(self) -> str:
        documents = self.folder.read_documents("rank") | self.folder.read_documents("discover")
        links = {
            f"{words}, with its plots": address("proxies", name) for name, words in document_titles(documents).items()
        }
        return render_page(
            "Proxies",
            proxy_sections(documents),
            command="archwright rank, archwright discover",
            lead="What untrained networks tell, on every benchmark that was ranked below this folder."
            if documents
            else "No ranking is below this folder yet: archwright rank nas-bert --json runs/rank.json makes one.",
            template="documents.html",
            context={"links": links},
            explore=True,
            site=self.site("Proxies"),
        )

    def proxy_document(self, name: str) -> str:
        document = self.folder.document(name, "rank", "discover")
        render = render_rank_page if "/rank/" in document["schema"] else render_discover_page
        return render(document, site=self.site("Proxies"))

    def architectures(self) -> str:
        documents = self.folder.read_documents("design")
        columns = [
            Column("document", [Cell(name, link=address("architecture", name)) for name in documents], left=True)
        ]
        for key in ("space", "sampler", "score", "parameters"):
            columns.append(Column(key, [fact(each.get(key)) for each in documents.values()], left=key in DESIGN_WORDS))
        return render_page(
            "Architectures",
            [section("designs", "Designs", DESIGNS, ReportTable(columns))] if documents else [],
            command="archwright design",
            lead="Small networks that were searched for without training any."
            if documents
            else "No design is below this folder yet: archwright design --out runs/design makes one.",
            template="documents.html",
            context={"links": {}},
            plotly=False,
            site=self.site("Architectures"),
        )

    def architecture(self, name: str) -> str:
        return render_design_page(self.folder.document(name, "design"), site=self.site("Architectures"))

    def start(self) -> str:
        return render_page(
            "Start a run",
            [],
            command="archwright compress",
            lead="The options of the command line. The equal command is shown as you go; it is a process of its own.",
            template="start.html",
            context={"options": self.start_options},
            data={"options": [option["name"] for option in self.start_options]},
            scripts=("picture.js",),
            plotly=False,
            site=self.site("Start", "start.js", root=shlex.quote(str(self.folder.root))),
        )

    def message(self, title: str, words: str) -> str:
        """A page with one sentence, for what is not there or not allowed."""
        return render_page(
            title, [], command="archwright serve", lead=words, template="message.html", plotly=False, site=self.site("")
        )


def member_choices(result: Mapping[str, Any]) -> list[tuple[int, str]]:
    """The members of a front by trial, each in a few words."""
    words = error_format(result).loss_words
    return [
        (member["trial"], f"{percent(number(member, 'nonembedding_share'))}, {words(loss(result, member))}")
        for member in result["front"]
    ]


def number_or(network: Mapping[str, Any], key: str, other: float) -> float:
    value = number(network, key)
    return other if value is None else value


def bundle(name: str) -> tuple[str, str] | None:
    """Text and type of the scripts or styles that a page asks for together; None for a name that is not ours."""
    if name == PLOTLY:
        return read_asset(name), "text/javascript"
    stem, dot, end = name.rpartition(".")
    known = {entry.name for entry in (files("archwright.reports") / "static").iterdir()}
    names = [f"{part}.{end}" for part in stem.split("+")]
    if not dot or end not in ("js", "css") or len(names) > 20 or not set(names) <= known:
        return None
    if end == "js":
        return str(script_bundle(names)), "text/javascript"
    return "\n".join(read_asset(each) for each in names), "text/css"
