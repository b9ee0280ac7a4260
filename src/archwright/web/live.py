"""A search while it runs: its study read again and again, and everyone who watches told what is new.

One reader per run serves all watchers, so that fifty of them cost the search no more than one.
"""

import asyncio
import json
import math
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from archwright.errors import Failed
from archwright.reports.page import replace_infinite
from archwright.statistics.pareto import hypervolume
from archwright.store import RunFolder, read_study
from archwright.web.folder import (
    DAMAGED,
    RUNNING,
    hide_path,
    read_note,
    read_progress,
    resume_command,
    settings_of,
    state_of,
    thin,
)

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

PAUSE = 0.5
"""Seconds between two looks at a run that somebody watches."""
HEARTBEAT = 15.0
"""Seconds after which a silent connection gets a sign of life."""
LAYERS, KEPT = "nonembedding_parameters", "kept"
"""An objective, and the user attribute of a told trial that `SubnetEvaluator.describe` writes."""
REFERENCE = (1.0, 1.0)
SCHEMA = "archwright/live/1"


class LiveRun:
    """The trials of a run that is not finished, in the order in which they were seen to be.

    Everything that watchers are told is made when something has changed, once for all of them.
    """

    def __init__(self, run: RunFolder) -> None:
        self.run = run
        self.rows: list[dict[str, Any]] = []
        self.volumes: list[float] = []
        self.kept: dict[int, list[list[int]]] = {}
        """Heads and units by layer of trials that were on the front when they were seen."""
        self.reason = ""
        self.version = 0
        """Another one whenever a watcher would see something new."""
        self.page: tuple[int, str] | None = None
        """The page as it was rendered last, and of which version."""
        self._seen: set[int] = set()
        self._best: list[tuple[float, float]] = []  # points that none of the others dominates
        self._study: Study | None = None
        self._journal: tuple[int, int] | None = None  # time and size of the file that was read last
        self._about: dict[str, Any] = {}
        self._front: list[dict[str, Any]] = []
        self._front_of = 0  # rows that it is the front of
        self._status: dict[str, Any] = {}
        self._events: dict[int, tuple[bytes, int]] = {}
        self._lock = threading.Lock()

    def update(self) -> None:
        """Reads what is new; a study that cannot be read gives a reason instead."""
        with self._lock:
            before = len(self.volumes)
            try:
                self.reason = ""
                self._about = self._about or read_note(self.run, "about") or {}
                self._read_study()
            except Exception as error:  # of whatever kind: a database that is gone says so in many ways
                self._study = self._journal = None
                known = isinstance(error, Failed)
                self.reason = (
                    hide_path(str(error), self.run) if known else f"its study cannot be read: {type(error).__name__}."
                )
            status = self._read_status()
            if status != self._status or len(self.volumes) != before:
                self._status, self._events = status, {}
                self.version += 1

    def _read_study(self) -> None:
        store, journal = settings_of(self.run).get("store"), self.run.path / "study.journal"
        if store is None:
            stat = journal.stat() if journal.exists() else None
            state = (stat.st_mtime_ns, stat.st_size) if stat else None
            if self._study is not None and state == self._journal:
                return  # nothing was told since
            if state is None:
                self._study = None
            self._journal = state
        if self._study is None:
            self._study = read_study(self.run, store)
        if self._study is not None:
            self._add(self._finished(self._study))

    def _read_status(self) -> dict[str, Any]:
        """What else watchers are told."""
        state, reason = state_of(self.run)
        damaged = state == DAMAGED
        return {
            "state": state,
            "reason": reason or self.reason,
            "progress": read_progress(self.run) if state == RUNNING else None,
            "planned_trials": None if damaged else self._about.get("trials") or settings_of(self.run).get("trials"),
            "seconds_by_phase": {} if damaged else read_note(self.run, "seconds") or {},
            "resume": "" if damaged else resume_command(self.run),
        }

    def _finished(self, study: "Study") -> "list[FrozenTrial]":
        from optuna.trial import TrialState

        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        new = [trial for trial in done if trial.number not in self._seen and trial.values and trial.datetime_complete]
        return sorted(new, key=lambda trial: (trial.datetime_complete, trial.number))

    def _add(self, trials: "list[FrozenTrial]") -> None:
        objectives = self.objectives
        whole = self._about.get(LAYERS)
        place = objectives.index(LAYERS) if LAYERS in objectives else None
        for trial in trials:
            self._seen.add(trial.number)
            kept = read_kept(trial)
            share = trial.values[place] / whole if whole and place is not None else kept.get("share")
            error = self.unscale(trial.values[0])
            start = self.rows[0]["begun"] if self.rows else trial.datetime_start
            end = trial.datetime_complete
            params = {name: value for name, value in trial.params.items() if isinstance(value, int | float)}
            layers = kept.get("layers") or []
            self.rows.append(
                {
                    "trial": trial.number,
                    "values": [error, *trial.values[1:]],
                    "validation_error": error,
                    "nonembedding_share": share,
                    **(total_kept(layers) if layers else {}),
                    "seconds": (end - start).total_seconds() if start and end else None,
                    "params": params if len(params) <= 6 else None,
                    "begun": start,
                }
            )
            if layers:
                self.kept[trial.number] = layers
            self.volumes.append(self._volume(trial.values[0], share))
        if trials:  # a network that is beaten once is never on the front again
            members = {row["trial"] for row in self.front()}
            self.kept = {number: layers for number, layers in self.kept.items() if number in members}

    def _volume(self, error: float, share: float | None) -> float:
        """The hypervolume with this point; one that others dominate changes nothing."""
        last = self.volumes[-1] if self.volumes else 0.0
        if share is None or not math.isfinite(error) or any(e <= error and s <= share for e, s in self._best):
            return last
        self._best = [(e, s) for e, s in self._best if not (error <= e and share <= s)] + [(error, share)]
        return hypervolume(np.array(self._best), REFERENCE)

    @property
    def objectives(self) -> list[str]:
        return list(self._about.get("objectives") or settings_of(self.run).get("objectives") or ())

    def unscale(self, error: float) -> float:
        """The error as users know it: studies of language models hold scaled perplexities."""
        words = self._about.get("vocabulary_size")
        return math.exp(error * math.log(words)) if words else error

    def front(self) -> list[dict[str, Any]]:
        """Rows that no other beats in error and size (where it is not known, in the first cost), smallest first."""
        if len(self.rows) != self._front_of:  # fifty watchers ask for the same
            places = [(self._size(row), row["validation_error"], at) for at, row in enumerate(self.rows)]
            front, best = [], math.inf
            for _, error, at in sorted(place for place in places if place[0] is not None):
                if error < best:
                    front.append(self.rows[at])
                    best = error
            self._front, self._front_of = front, len(places)
        return self._front

    def _size(self, row: dict[str, Any]) -> float | None:
        values = row["values"]
        return row["nonembedding_share"] if row["nonembedding_share"] is not None else values[1] if values[1:] else None

    def document(self) -> dict[str, Any]:
        """As far as it is known, what the result will be: schema archwright/compress/1 with much that is null."""
        about, options = self._about, settings_of(self.run)
        whole, seconds = about.get(LAYERS), self._status.get("seconds_by_phase") or {}
        rows = [public(row) for row in self.rows]
        members = [
            {
                **{key: row[key] for key in ("trial", "validation_error", "nonembedding_share")},
                "config": row["params"] or {},
                "keep": self.kept.get(row["trial"]),
                LAYERS: row["nonembedding_share"] * whole if whole and row["nonembedding_share"] is not None else None,
            }
            for row in self.front()
        ]
        empty = {"validation_error": None, "test_error": None, LAYERS: whole}
        return {
            "schema": "archwright/compress/1",
            **{key: options.get(key) for key in ("model", "task", "metric", "space", "sampler", "seed", "method")},
            **{key: about[key] for key in about if key not in ("trials", LAYERS, "vocabulary_size")},
            "task": about.get("task") or options.get("task") or options.get("train") or "its task",
            "run": self.run.path.name,
            "objectives": self.objectives,
            "original": empty,
            "supernet": None,
            "front": members,
            "trials": rows,
            "hypervolume": self.volumes[-1] if self.volumes else None,
            "hypervolume_over_time": list(self.volumes),
            "seconds_by_phase": seconds,
            "seconds": sum(seconds.values()) or None,
        }

    def news(self, after: int) -> dict[str, Any]:
        """What a watcher who knows the first `after` rows does not know yet; layers of new members of the front."""
        front, kept = [row["trial"] for row in self.front()], self.kept
        return {
            "schema": SCHEMA,
            **self._status,
            "after": after,
            "trials": [
                public(row) | ({"keep": kept[row["trial"]]} if row["trial"] in kept else {})
                for row in self.rows[after : len(self.volumes)]
            ],
            "hypervolume_over_time": self.volumes[after:],
            "front": front,
        }

    def event_after(self, after: int) -> tuple[bytes, int]:
        """The news as an event, made once for all who know as much, and how many rows are known with it."""
        events = self._events
        if after not in events:
            news = self.news(after)
            events[after] = event("news", news), after + len(news["trials"])
        return events[after]

    def summary(self) -> dict[str, Any]:
        """What the list of runs shows of it."""
        return {
            "trials": len(self.rows),
            "sparkline": thin(self.volumes),
            "hypervolume": self.volumes[-1] if self.volumes else None,
            "reason": self.reason,
        }


def read_kept(trial: "FrozenTrial") -> dict[str, Any]:
    """What the search noted of a trial; nothing of those of earlier versions."""
    kept = trial.user_attrs.get(KEPT)
    return kept if isinstance(kept, dict) else {}


def total_kept(layers: list[list[int]]) -> dict[str, int]:
    """Layers, heads and units that are left, as the result counts them."""
    return {
        "layers": sum(1 for heads, units in layers if heads or units),
        "heads": sum(heads for heads, _ in layers),
        "units": sum(units for _, units in layers),
    }


def public(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "begun"}


class LiveRuns:
    """The readers of all runs that somebody looks at, the longest unused forgotten first."""

    def __init__(self, most: int = 64) -> None:
        self._most, self._runs, self._lock = most, dict[tuple[str, str], LiveRun](), threading.Lock()

    def get(self, run: RunFolder) -> LiveRun:
        """Up to date."""
        with self._lock:
            key = (str(run.path), str(read_note(run, "run")["id"]))
            live = self._runs.pop(key, None) or LiveRun(run)
            self._runs[key] = live
            while len(self._runs) > self._most:
                self._runs.pop(next(iter(self._runs)))
        live.update()
        return live


class Channel:
    """Calls `look` every so often while anybody listens, and wakes all listeners when what it returns has changed.

    Nobody holds a lock: a listener is cancelled wherever it waits when its browser leaves.
    """

    def __init__(self, look: Callable[[], Any], pause: float = PAUSE) -> None:
        self._look, self._pause = look, pause
        self._listeners = 0
        self._changed = asyncio.Event()  # another one for every change
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self.latest: Any = None
        self.version = 0

    async def _watch(self) -> None:
        while self._listeners and not self._closed:
            try:
                found = await asyncio.to_thread(self._look)
            except Exception as error:  # a run that was deleted: its listeners find out when they look themselves
                found = repr(error)
            if found != self.latest:
                self.latest, self.version = found, self.version + 1
                self._wake()
            await asyncio.sleep(self._pause)

    def _wake(self) -> None:
        before, self._changed = self._changed, asyncio.Event()
        before.set()

    def close(self) -> None:
        """Ends all streams."""
        self._closed = True
        self._wake()

    async def listen(self) -> AsyncGenerator[Any, None]:
        """What was found whenever it changes, beginning with now; None after a while in which nothing did."""
        self._listeners += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        known = 0
        try:
            while not self._closed:
                if self.version == known:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._changed.wait(), HEARTBEAT)
                fresh, known = self.version != known, self.version
                if not self._closed:
                    yield self.latest if fresh else None
        finally:
            self._listeners -= 1


def event(name: str, data: Any) -> bytes:
    """A server-sent event."""
    return f"event: {name}\ndata: {json.dumps(replace_infinite(data), allow_nan=False)}\n\n".encode()
