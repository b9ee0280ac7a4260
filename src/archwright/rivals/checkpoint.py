"""The pre-trained checkpoint behind a network that `train` has fine-tuned."""

from pathlib import Path

from archwright.rivals import NoRival
from archwright.store import RunFolder, is_run
from archwright.training.objectives.finetune import TEACHER
from archwright.training.students import checkpoint_source, is_pruned_checkpoint


def find_pretrained(name: str) -> str:
    """The checkpoint itself, or that which the run behind it fine-tuned, as its model or as the teacher of that.

    NoRival where no run says so.
    """
    while is_pruned_checkpoint(source := checkpoint_source(name)):
        folder = Path(source).resolve()
        run, option = folder.parent, "teacher" if folder.name == TEACHER else "model"
        origin = RunFolder(run).settings.get(option) if is_run(run) else None
        if origin is None:
            raise NoRival(f"the teacher {name} is fine-tuned already, and no run beside it says from which checkpoint")
        name = str(origin)
    return name
