"""What one of two processes does; the results lie in the folder that is named.

torchrun --nproc-per-node 2 -m tests.training.pair FOLDER, or python -m tests.training.pair FOLDER: without launcher the
process splits itself, which loads everything once.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn

from archwright.store.checkpoints import FileCheckpoints
from archwright.training.distributed import ProcessGroup, join_process_group
from archwright.training.loop import StepRecord, train_network
from archwright.training.schedule import Schedule
from tests.training.cases import CASES, DEALT, Case, Rows, gradients, next_tokens

SCHEDULE = Schedule(steps=4, learning_rate=1e-2, warmup=0.3)
ALWAYS = -1.0


def without_dropout(model: nn.Module) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


def streams() -> list[Rows]:
    """Windows of two sets of streams in turn, so that every one of two processes reads its own set on and on."""
    places = [(window, half) for window in range(4) for half in range(2)]
    return [next_tokens(10 * half + at, first=[100 * half + at, 100 * half + 50 + at], rows=2) for at, half in places]


class Noted(FileCheckpoints):
    """The same, and who saved."""

    def save(self, state: dict[str, Any]) -> None:
        super().save(state)
        with open(self.path.parent / f"saved-by-{distributed.get_rank()}", "a") as notes:
            notes.write(f"{state['step']}\n")


def trained(case: Case, group: ProcessGroup, records: list[StepRecord] | None = None, **options: Any) -> dict[str, Any]:
    log = None if records is None else records.append
    train_network(
        without_dropout(case.model),
        lambda _: case.batches,
        case.update,
        SCHEDULE,
        seed=1,
        carry=case.carry,
        group=group,
        log=log,
        **options,
    )
    return case.model.state_dict()


def main(folder: Path) -> None:
    group = join_process_group(cpu=True)
    mine: dict[str, Any] = {"processes": group.processes, "rank": group.rank, "device": str(group.device)}
    for name in DEALT:
        case, rank = CASES[name](group), group.rank
        mine[name] = gradients(case, [case.batches[rank]], group)
        mine[f"{name} twice"] = gradients(case, [case.batches[rank], case.batches[rank + 2]], group)
    records: list[StepRecord] = []
    mine["weights"] = trained(CASES["masked"](group), group, records)
    mine["records"] = records
    whole = replace(CASES["recurrent"](group), batches=streams())
    mine["whole"] = trained(whole, group)
    kept = Noted(folder / "check.safetensors")
    trained(replace(CASES["recurrent"](group), batches=streams()), group, checkpoints=kept, every_seconds=1e9, stop=2)
    again = replace(CASES["recurrent"](group), batches=streams())
    mine["resumed"] = trained(again, group, checkpoints=kept, every_seconds=ALWAYS)
    mine["reading"] = (whole.carry.state(), again.carry.state())
    torch.save(mine, folder / f"{group.rank}.pt")
    group.wait()
    distributed.destroy_process_group()


def split(folder: Path) -> int:
    """Two processes of this one, told what torchrun would tell them; 0 when both ended well."""
    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "WORLD_SIZE": "2"}
    os.environ |= {"LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}
    children = []
    for rank in range(2):
        if (child := os.fork()) == 0:
            os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            main(folder)
            os._exit(0)
        children.append(child)
    return max(os.waitpid(child, 0)[1] for child in children)


if __name__ == "__main__":
    if "RANK" in os.environ:
        main(Path(sys.argv[1]))
    else:
        sys.exit(split(Path(sys.argv[1])))
