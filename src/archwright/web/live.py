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
from archwright.web.folder import RUNNING, hide_path, read_progress, resume_command, state_of, thin

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

PAUSE = 0.5
"""Seconds between two looks at a run that somebody watches."""
HEARTBEAT = 15.0
"""Seconds after which a silent connection gets a sign of life."""
LAYERS = "nonembedding_parameters"
REFERENCE = (1.0, 1.0)
SCHEMA = "archwright/live/1"


class LiveRun:
    """The trials of a run that is not finished, in the order in which they were seen to be."""

    def __init__(self, run: RunFolder) -> None:
        self.run = run
        self.rows: list[dict[str, Any]] = []
        self.volumes: list[float] = []
        self.reason = ""
        self._seen: set[int] = set()
        self._best: list[tuple[float, float]] = []  # points that none of the others dominates
        self._study: Study | None = None
        self._about: dict[str, Any] = {}
        self._front: list[dict[str, Any]] = []
        self._front_of = 0  # rows that it is the front of
        self._lock = threading.Lock()

    def update(self) -> None:
        """Reads what is new; a study that cannot be read gives a reason instead."""
        with self._lock:
            try:
                self.reason = ""
                self._about = self._about or self.run.note("about") or {}
                if self._study is None:
                    self._study = read_study(self.run, self.run.settings.get("store"))
                if self._study is not None:
                    self._add(self._finished(self._study))
            except Exception as error:  # of whatever kind: a database that is gone says so in many ways
                self._study = None
                known = isinstance(error, Failed)
                self.reason = (
                    hide_path(str(error), self.run) if known else f"its study cannot be read: {type(error).__name__}."
                )

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
            share = trial.values[place] / whole if whole and place is not None else None
            error = self.unscale(trial.values[0])
            start = self.rows[0]["begun"] if self.rows else trial.datetime_start
            end = trial.datetime_complete
            params = {name: value for name, value in trial.params.items() if isinstance(value, int | float)}
            self.rows.append(
                {
                    "trial": trial.number,
                    "values": [error, *trial.values[1:]],
                    "validation_error": error,
                    "nonembedding_share": share,
                    "seconds": (end - start).total_seconds() if start and end else None,
                    "params": params if len(params) <= 6 else None,
                    "begun": start,
                }
            )
            self.volumes.append(self._volume(trial.values[0], share))

    def _volume(self, error: float, share: float | None) -> float:
        """The hypervolume with this point; one that others dominate changes nothing."""
        last = self.volumes[-1] if self.volumes else 0.0
        if share is None or not math.isfinite(error) or any(e <= error and s <= share for e, s in self._best):
            return last
        self._best = [(e, s) for e, s in self._best if not (error <= e and share <= s)] + [(error, share)]
        return hypervolume(np.array(self._best), REFERENCE)

    @property
    def objectives(self) -> list[str]:
        return list(self._about.get("objectives") or self.run.settings.get("objectives") or ())

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
        about, options = self._about, self.run.settings
        whole = about.get(LAYERS)
        rows = [public(row) for row in self.rows]
        members = [
            {
                **{key: row[key] for key in ("trial", "validation_error", "nonembedding_share")},
                "config": row["params"] or {},
                "keep": None,
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
            "seconds_by_phase": self.run.seconds,
            "seconds": sum(self.run.seconds.values()) or None,
        }

    def news(self, after: int) -> dict[str, Any]:
        """What a watcher who knows the first `after` rows does not know yet."""
        state, reason = state_of(self.run)
        return {
            "schema": SCHEMA,
            "state": state,
            "reason": reason or self.reason,
            "progress": read_progress(self.run) if state == RUNNING else None,
            "planned_trials": self._about.get("trials") or self.run.settings.get("trials"),
            "after": after,
            "trials": [public(row) for row in self.rows[after : len(self.volumes)]],
            "hypervolume_over_time": self.volumes[after:],
            "front": [row["trial"] for row in self.front()],
            "seconds_by_phase": self.run.seconds,
            "resume": resume_command(self.run),
        }

    def summary(self) -> dict[str, Any]:
        """What the list of runs shows of it."""
        return {
            "trials": len(self.rows),
            "sparkline": thin(self.volumes),
            "hypervolume": self.volumes[-1] if self.volumes else None,
            "reason": self.reason,
        }


def public(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "begun"}


class LiveRuns:
    """The readers of all runs that somebody looks at, the longest unused forgotten first."""

    def __init__(self, most: int = 64) -> None:
        self._most, self._runs, self._lock = most, dict[tuple[str, str], LiveRun](), threading.Lock()

    def get(self, run: RunFolder, *, update: bool = True) -> LiveRun:
        """Up to date, or as it was when somebody looked last."""
        with self._lock:
            key = (str(run.path), run.identity)
            live = self._runs.pop(key, None) or LiveRun(run)
            self._runs[key] = live
            while len(self._runs) > self._most:
                self._runs.pop(next(iter(self._runs)))
        if update:
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
