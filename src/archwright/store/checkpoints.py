"""Half-done trainings."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from safetensors import SafetensorError

from archwright.errors import Failed
from archwright.store.files import atomic_file, sweep_beside


@dataclass(frozen=True)
class FileCheckpoints:
    """The state of a training in one safetensors file."""

    path: Path
    writes: bool = True
    """Whether this process saves and removes them; others only read."""

    def save(self, state: dict[str, Any]) -> None:
        """Straight from the tensors to the file: a copy in memory would be as large as model and optimizer."""
        from safetensors.torch import save_file

        tensors = {f"model.{name}": tensor.contiguous() for name, tensor in state["model"].items()}
        for index, moments in state["optimizer"].items():
            tensors |= {f"optimizer.{index}.{name}": tensor for name, tensor in moments.items()}
        carried = {name: value for name, value in state["carry"].items() if hasattr(value, "contiguous")}
        tensors |= {f"carry.{name}": tensor.contiguous() for name, tensor in carried.items()}
        plain = {name: value for name, value in state["carry"].items() if name not in carried}
        metadata = {"step": str(state["step"]), "carry": json.dumps(plain), "crc32": str(tensor_checksum(tensors))}
        try:
            with atomic_file(self.path) as beside:
                save_file(tensors, beside, metadata=metadata)
        except (SafetensorError, OSError) as error:
            way_out = "make room and run the same command again"
            raise Failed(f"the training checkpoint {self.path} could not be written ({error}); {way_out}.") from error

    def load(self) -> dict[str, Any] | None:
        from safetensors import safe_open

        if self.writes:
            sweep_beside(self.path)  # a kill may have come while it was being written
        if not self.path.exists():
            return None
        state: dict[str, Any] = {"model": {}, "optimizer": {}}
        tensors: dict[str, Any] = {}
        try:
            with safe_open(self.path, framework="pt") as file:
                state["step"] = int(file.metadata()["step"])
                state["carry"] = json.loads(file.metadata()["carry"])
                for key in file.keys():  # noqa: SIM118 - not a dict
                    tensors[key] = file.get_tensor(key)
                    kind, _, name = key.partition(".")
                    if kind == "optimizer":
                        index, _, moment = name.rpartition(".")
                        state["optimizer"].setdefault(int(index), {})[moment] = tensors[key]
                    else:  # model or carry
                        state[kind][name] = tensors[key]
                written = file.metadata().get("crc32")  # earlier versions wrote none
            if written is not None and int(written) != tensor_checksum(tensors):
                raise ValueError("its checksum is another one")
        except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
            damage = f"the training checkpoint {self.path} is damaged"
            raise Failed(f"{damage}; delete it to train from the start.") from error
        return state

    def remove(self) -> None:
        if self.writes:
            self.path.unlink(missing_ok=True)


def tensor_checksum(tensors: dict[str, Any]) -> int:
    """Of names and bytes; CRC-32, because a training waits for it."""
    found = 0
    for name in sorted(tensors):
        flat = tensors[name].detach().cpu().contiguous().reshape(-1)
        raw = flat.view(flat[:0].byte().dtype)  # bytes: numpy does not know bfloat16
        found = crc32(raw.numpy(), crc32(name.encode(), found))
    return found
