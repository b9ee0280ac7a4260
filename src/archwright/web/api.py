"""JSON for scripts and for our own pages; the schemas are in docs/json.md."""

import json
import tempfile
import zipfile
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse

from archwright.compression.budgets.limits import BUDGETS, costs_of_front, parse_limits
from archwright.compression.run import FinishedRun, Selection, load_run
from archwright.errors import BadInput, Failed
from archwright.reports.page import replace_infinite
from archwright.store import RunFolder
from archwright.web.folder import DAMAGED, FINISHED, UNEXPECTED, NotFound, state_of
from archwright.web.jobs import Jobs
from archwright.web.live import Channel, LiveRun, LiveRuns, event
from archwright.web.models import ModelProcess
from archwright.web.pages import FORMATS, Pages, address

RUNS_PAUSE = 1.0
"""Seconds between two looks at the list of runs."""
MOST_WATCHERS = 500
MANY_ROWS = 200
"""Trials that take so long to write as JSON that others should not wait for it."""
BUDGET_NAMES = ("params", "latency_ms", "max_loss", "total_params", "flops", "int8_size")


class BadRequest(Exception):
    """A request that cannot be answered; one line says why."""


class Api:
    """Everything below /api/, and downloads."""

    def __init__(self, pages: Pages, live: LiveRuns, jobs: Jobs, models: ModelProcess) -> None:
        self.pages, self.folder, self.live, self.jobs, self.models = pages, pages.folder, live, jobs, models
        self.channels: dict[str, Channel] = {}
        self.watchers = 0
        self._inspected: dict[tuple[str, int, int], dict[str, Any]] = {}

    def close_streams(self) -> None:
        """Ends all streams of events, so that a server can end."""
        for channel in list(self.channels.values()):
            channel.close()

    async def runs(self, request: Request) -> Response:
        rows = await run_in_threadpool(self.pages.run_rows)
        return answer({"schema": "archwright/runs/1", "runs": rows})

    async def run(self, request: Request) -> Response:
        run = self.folder.run(request.path_params["name"])

        def read() -> dict[str, Any]:
            state, reason = state_of(run)
            if reason:
                raise Failed(f"this run is damaged: {reason}")
            return dict(run.note("result")) if state == FINISHED else self.live.get(run).document()

        return answer(await run_in_threadpool(read))

    async def run_events(self, request: Request) -> Response:
        name = request.path_params["name"]
        run = self.folder.run(name)
        after = whole_number(request.query_params.get("after", "0"), "after")

        def look() -> tuple[LiveRun, int]:
            live = self.live.get(run)
            return live, live.version

        async def stream(channel: Channel) -> AsyncGenerator[bytes, None]:
            known = after
            async with aclosing(channel.listen()) as changes:
                async for found in changes:
                    if found is None:
                        yield b": still here\n\n"
                        continue
                    if isinstance(found, str):
                        return  # the run was deleted; who asks again is told so
                    live, _ = found
                    if len(live.rows) - known > MANY_ROWS:
                        told, known = await run_in_threadpool(live.event_after, known)
                    else:
                        told, known = live.event_after(known)
                    yield told

        return self.events(f"run {name}", look, stream)

    async def all_events(self, request: Request) -> Response:
        async def stream(channel: Channel) -> AsyncGenerator[bytes, None]:
            async with aclosing(channel.listen()) as changes:
                async for found in changes:
                    yield b": still here\n\n" if found is None else event("runs", {"runs": found})

        return self.events("runs", self.pages.run_rows, stream, RUNS_PAUSE)

    def events(self, key: str, look: Any, stream: Any, pause: float = 0.5) -> Response:
        """One channel for all who watch the same; the connection ends with the server."""
        if self.watchers >= MOST_WATCHERS:
            return answer({"error": f"{MOST_WATCHERS} pages are watching already."}, 503)
        channel = self.channels.setdefault(key, Channel(look, pause))

        async def guarded() -> AsyncGenerator[bytes, None]:
            self.watchers += 1
            try:
                async with aclosing(stream(channel)) as parts:
                    async for part in parts:
                        yield part
            finally:
                self.watchers -= 1

        return StreamingResponse(guarded(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    async def select(self, request: Request) -> Response:
        """As `archwright select` without export, for costs that the run's own front is about: others need torch."""
        run = self.folder.run(request.path_params["name"])
        budget = {key: request.query_params[key] for key in BUDGET_NAMES if key in request.query_params}

        def choose() -> dict[str, Any]:
            finished = self.finished(run)
            options: dict[str, Any] = dict(budget)
            if "latency_ms" in options:
                options["latency_ms"] = decimal_number(options["latency_ms"], "latency_ms")
            limits = {key: options.get(key) for key in ("params", "flops", "latency_ms", "int8_size")}
            costs = parse_limits(
                finished.result,
                **limits,
                total_params=options.get("total_params", False),
                memory=None,
                original_memory=lambda: 0.0,
            )
            if foreign := set(costs) - costs_of_front(finished.result):
                names = ", ".join(BUDGETS[name].option for name in sorted(foreign))
                raise BadInput(
                    f"{names} is not what this front is about; ask `archwright select`, which looks further."
                )
            return select_document(finished.select(**options))

        return answer(await run_in_threadpool(choose))

    async def find_member(self, request: Request) -> tuple[RunFolder, int, Selection]:
        """The run, the trial and the member of its front that a request is about; one line where there is none."""
        run, trial = self.folder.run(request.path_params["name"]), request.path_params["trial"]
        return run, trial, await run_in_threadpool(lambda: self.finished(run).member(trial))

    def finished(self, run: RunFolder) -> FinishedRun:
        state, reason = state_of(run)
        if state == DAMAGED:
            raise Failed(f"this run is damaged: {reason}")
        if state != FINISHED:
            raise BadInput(f"the run must be finished, this one is {state}.")
        found = load_run(run.path)
        try:
            [(entry["trial"], entry["config"]) for entry in found.front]
        except UNEXPECTED as error:
            raise Failed(
                f"this run is damaged: result.json is not what was written ({type(error).__name__})."
            ) from error
        return found

    async def network(self, request: Request) -> Response:
        _, _, member = await self.find_member(request)
        return answer(select_document(member))

    async def inspect(self, request: Request) -> Response:
        """Classes and texts; measured once per server and result."""
        run, trial, _ = await self.find_member(request)
        key = (str(run.path), trial, (run.path / "result.json").stat().st_mtime_ns)
        if key not in self._inspected:
            self._inspected[key] = await run_in_threadpool(self.models.ask, "inspect", run.path, trial)
        return answer(self._inspected[key])

    async def try_text(self, request: Request) -> Response:
        asked = await read_body(request, {"text": str, "pair": str})
        run, trial, _ = await self.find_member(request)
        more = {"text": asked.get("text", ""), "pair_text": asked.get("pair", "")}
        return answer(await run_in_threadpool(lambda: self.models.ask("try", run.path, trial, **more)))

    async def export(self, request: Request) -> Response:
        """Starts an export as a job."""
        name = request.path_params["name"]
        asked = await read_body(request, {"to": str, "int8": bool})
        to, int8 = asked.get("to", ""), bool(asked.get("int8", False))
        if to not in FORMATS:
            raise BadInput(f"to must be one of {', '.join(FORMATS)}, got {to!r}.")
        run, trial, _ = await self.find_member(request)
        words = ["export", str(run.path), "--trial", str(trial), "--to", to, *(["--int8"] if int8 else [])]
        about = {"run": name, "trial": trial, "to": to, "int8": int8}
        about["download"] = address("download", f"trial-{trial}-{to}", name)
        job = self.jobs.start("export", words, about=about)
        return answer(job.as_json(), 202)

    async def all_jobs(self, request: Request) -> Response:
        return answer({"schema": "archwright/jobs/1", "jobs": [job.as_json() for job in self.jobs.all()]})

    async def job(self, request: Request) -> Response:
        job = self.jobs.get(request.path_params["id"])
        if job is None:
            raise NotFound("job")
        return answer(job.as_json())

    async def stop_job(self, request: Request) -> Response:
        job = self.jobs.get(request.path_params["id"])
        if job is None:
            raise NotFound("job")
        self.jobs.stop(job)
        return answer(job.as_json())

    async def download(self, request: Request) -> Response:
        """An exported folder as a ZIP file."""
        name, export = request.path_params["name"], request.path_params["export"]
        self.folder.run(name)
        folder = self.folder.resolve(f"{name}/export/{export}")
        inside = folder.parent == self.folder.resolve(f"{name}/export")
        if not inside or not (folder / "parity.json").is_file():
            raise NotFound(export)
        path = await run_in_threadpool(pack, folder)
        return FileResponse(
            path,
            media_type="application/zip",
            filename=f"{Path(name).name}-{folder.name}.zip",
            background=BackgroundTask(path.unlink, missing_ok=True),
        )


def pack(folder: Path) -> Path:
    """The files of a folder, stored: weights hardly get smaller. Links are left out."""
    with tempfile.NamedTemporaryFile(prefix="archwright-", suffix=".zip", delete=False) as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as packed:
            for path in sorted(folder.rglob("*")):
                if path.is_file() and not path.is_symlink():
                    packed.write(path, Path(folder.name) / path.relative_to(folder))
        return Path(file.name)


def select_document(pick: Selection) -> dict[str, Any]:
    """Schema archwright/select/1."""
    return {
        "schema": "archwright/select/1",
        "original": pick.run.result["original"],
        "selected": dict(pick.entry),
        "neighbours": pick.neighbours,
        "recovery": None,
        "export": None,
    }


async def read_body(request: Request, fields: dict[str, type]) -> dict[str, Any]:
    """The JSON object of a request, with these fields and no others."""
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise BadRequest("the body must be JSON, and not nested a thousand times.") from None
    if not isinstance(body, dict) or not set(body) <= set(fields):
        raise BadRequest(f"the body must be an object with {', '.join(fields)}.")
    for name, value in body.items():
        if not isinstance(value, fields[name]):
            raise BadRequest(f"{name} must be {fields[name].__name__}.")
    return body


def whole_number(text: str, name: str) -> int:
    if not text.isdigit() or len(text) > 9:
        raise BadRequest(f"{name} must be a whole number.")
    return int(text)


def decimal_number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadRequest(f"{name} must be a number.") from None


def answer(document: Any, status: int = 200) -> Response:
    return JSONResponse(replace_infinite(document), status)
