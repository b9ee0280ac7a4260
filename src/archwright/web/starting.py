"""The form that starts a run: the options of `compress`, the command they make, and the process."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from archwright.configs.compress import CompressConfig
from archwright.configs.options import config_options, make_config, option_docs, option_groups
from archwright.errors import BadInput
from archwright.web.api import Api, BadRequest, answer, read_body
from archwright.web.folder import STOPPED, ServedFolder, resume_words, state_of

MOST_RUNS = 1
"""Runs that are started here at the same time: each wants the whole machine."""
NO_FIELD = ("out",)
"""Options that have a field of their own: where a run goes is below the served folder."""


def form_options(names: Sequence[str]) -> list[dict[str, Any]]:
    """What the form shows of these options of `compress`."""
    known = config_options(CompressConfig)
    docs = {name: doc for group in option_groups(CompressConfig).values() for name, doc in option_docs(group).items()}
    fields = []
    for name in names:
        option = known[name]
        if name in NO_FIELD:
            continue
        default = None if option.required else option.field.default
        fields.append(
            {
                "name": name,
                "flag": option.flag,
                "help": docs.get(name, ""),
                "choices": list(option.choices()),
                "default": "" if default is None or default is False or default == () else str(default),
                "kind": option.type.__name__,
            }
        )
    return fields


def build_command(folder: ServedFolder, name: str, options: Mapping[str, str], allowed: Sequence[str]) -> list[str]:
    """`compress` with these options, checked as the command line checks them, into a new folder of this name."""
    place = Path(name)
    wrong = place.is_absolute() or ".." in place.parts or not place.parts or any(p.startswith(".") for p in place.parts)
    if wrong or len(name) > 200 or "\x00" in name or not (folder.root / place).resolve().is_relative_to(folder.root):
        raise BadInput(f"the name must be a new folder below the served one, such as sst2-small, got {name!r}.")
    known, words = config_options(CompressConfig), ["compress"]
    given = {key: value for key, value in options.items() if str(value).strip()}
    for key in given:
        if key not in allowed or key in NO_FIELD:
            raise BadInput(f"unknown option {key!r}.")
    make_config(CompressConfig, {key: typed(known[key].type, value) for key, value in given.items()})
    for key, value in given.items():
        words += [f"{known[key].flag}={value}"]
    return [*words, f"--out={folder.root / place}"]


def typed(kind: type, value: str) -> Any:
    """A text of the form as the option has it."""
    return value.lower() in ("true", "on", "yes") if kind is bool else value


class Starter:
    """Answers the form."""

    def __init__(self, api: Api, allowed: Sequence[str]) -> None:
        self.api, self.allowed = api, allowed

    async def read(self, request: Request) -> tuple[str, list[str]]:
        asked = await read_body(request, {"name": str, "options": dict})
        options = asked.get("options", {})
        if not all(isinstance(value, str) for value in options.values()):
            raise BadRequest("options must be texts.")
        name = asked.get("name", "").strip()
        return name, build_command(self.api.folder, name, options, self.allowed)

    async def command(self, request: Request) -> Response:
        """The equal command line, without starting it."""
        _, words = await self.read(request)
        return answer({"command": shlex.join(["archwright", *words])})

    async def start(self, request: Request) -> Response:
        name, words = await self.read(request)
        if (self.api.folder.root / name).exists():
            raise BadInput(f"the name must be new, got {name!r}, which exists; resume it on its own page.")
        return answer(self.api.jobs.start("run", words, about={"run": name}, most=MOST_RUNS).as_json(), 202)

    async def resume(self, request: Request) -> Response:
        """Goes on with a run that was stopped."""
        name = request.path_params["name"]
        run = self.api.folder.run(name)
        if state_of(run)[0] != STOPPED:
            raise BadInput(f"only a run that was stopped can be resumed, {name!r} is {state_of(run)[0]}.")
        await run_in_threadpool(self.api.jobs.wait_for_stopped)
        job = self.api.jobs.start("run", resume_words(run), about={"run": name}, most=MOST_RUNS)
        return answer(job.as_json(), 202)

    async def stop(self, request: Request) -> Response:
        """Ends a run that was started here, as Ctrl-C does."""
        name = request.path_params["name"]
        self.api.folder.run(name)
        job = next((j for j in self.api.jobs.all() if j.kind == "run" and j.about.get("run") == name), None)
        if job is None:
            raise BadInput(f"only runs that were started on this page can be stopped here; {name!r} was not.")
        self.api.jobs.stop(job)
        return answer(job.as_json())
