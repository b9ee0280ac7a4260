"""`archwright worker`: help a run that another process or machine has begun."""

import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import torch

from archwright.errors import Failed
from archwright.jobs import options as o
from archwright.jobs.scene import build_scene
from archwright.jobs.searching import Ground, latency_table, limits, needs_table, objectives, study_of
from archwright.jobs.training import ORDERS, noted_order, space_of
from archwright.networks.load import saved_network
from archwright.objectives import LatencyTable
from archwright.progress import progress
from archwright.search import search
from archwright.store import RunFolder, answering, existing_run

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Helped:
    """What this worker did."""

    run: str
    trials: int

    def as_json(self) -> dict[str, Any]:
        return {"schema": "archwright/worker/1", "run": self.run, "trials": self.trials}

    def show(self, console: "Console") -> None:
        console.print(f"{self.trials} trials evaluated for {self.run}", highlight=False)


def worker(run: o.Run, joining: o.Joining) -> Helped:
    """Evaluates trials until the run has as many as it wants."""
    torch.set_num_threads(max(1, joining.threads))
    folder = existing_run(run.run)
    await_file(folder.supernet, joining.wait_minutes)
    ground = ground_of(folder, device=joining.device)
    table = awaited_table(ground, joining.wait_minutes)
    done: list[int] = []

    def told(trial: Any) -> None:
        done.append(trial.number)
        bar.advance()

    with answering(), progress("search", None, unit="trials") as bar:
        search(
            study_of(ground),
            ground.space,
            objectives(ground, table),
            limits=limits(ground, table),
            trials=ground.search.trials,
            deadline=deadline_of(folder),
            told=told,
        )
    return Helped(str(run.run), len(done))


def await_file(path: Path, minutes: float) -> None:
    """Waits for what the run's own command makes first."""
    until = time.monotonic() + 60 * minutes
    while not path.exists():
        if time.monotonic() > until:
            raise Failed(f"{path} is not there after {minutes:g} minutes; is its `archwright compress` running?")
        time.sleep(1.0)


def awaited_table(ground: Ground, minutes: float) -> LatencyTable | None:
    """The latency table of the machine that began the run; never one of this machine."""
    if needs_table(ground):
        await_file(ground.run.path / "latency_table.json", minutes)
    return latency_table(ground)


def deadline_of(folder: RunFolder) -> float | None:
    """When the run's --minutes are over, on this process's clock."""
    noted = folder.note("deadline")
    return None if noted is None else time.monotonic() + noted["at"] - time.time()


def ground_of(folder: RunFolder, *, device: str = "cpu") -> Ground:
    """What the run searches on, rebuilt from its folder."""
    model, data, supernet, search_, budget, measure, output = (
        group_from(folder, group) for group in (o.Model, o.Data, o.Supernet, o.Search, o.Budget, o.Measure, o.Output)
    )
    scene = build_scene(model, data, seed=output.seed, device=device)
    network = saved_network(folder.supernet).to(scene.device)
    order = noted_order(folder)
    if order is None and ORDERS[supernet.order]:
        raise Failed(f"{folder.path} has lost its order.json; run its `archwright compress` command again.")
    space = space_of(supernet.space, network, order)
    return Ground(folder, scene, network, space, search_, budget, measure, output.seed)


def group_from(folder: RunFolder, group: type) -> Any:
    """The run's options of this group."""
    noted, hints = folder.settings, get_type_hints(group)
    return group(**{f.name: declared(noted[f.name], hints[f.name]) for f in fields(group) if f.name in noted})


def declared(value: Any, hint: Any) -> Any:
    """A JSON value as the option declares it: lists are tuples, paths are paths."""
    if isinstance(value, list):
        return tuple(value)
    return Path(value) if isinstance(value, str) and Path in (hint, *get_args(hint)) else value
