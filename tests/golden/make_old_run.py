"""Writes old_run.tar.gz: `python -m tests.golden.make_old_run`. Never again once archwright has moved on.

A run keeps absolute paths of its model and data; in the archive HERE stands for the folder, and `unpack` puts the new
one in. The page of a run is 4 MB of plotly and therefore left empty; the weights of networks of the spaces, which are
large, are replaced by a pattern that packs well.
"""

import tarfile
import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tests.golden.build import save_model, write_design, write_rows, write_text
from tests.golden.cli import inside, run_cli

ARCHIVE = Path(__file__).parent / "old_run.tar.gz"
SMALLER = {"hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 2, "num_hidden_layers": 2}
COMPRESS = [
    "compress",
    "--model",
    "bert",
    "--train",
    "rows.csv",
    "--epochs",
    "3",
    "--original-epochs",
    "6",
    "--batch-size",
    "16",
    "--learning-rate",
    "3e-3",
    "--train-embeddings",
    "--rounds",
    "3",
    "--threads",
    "1",
    "--max-length",
    "24",
    "--out",
    "run",
    "--trials",
]
TRAIN = [
    "train",
    "--model",
    "bert",
    "--lesson",
    "mlm",
    "--corpus",
    "text.txt",
    "--steps",
    "6",
    "--batch-size",
    "8",
    "--max-length",
    "16",
    "--threads",
    "1",
    "--learning-rate",
    "2e-3",
    "--validation-rows",
    "20",
    "--out",
    "trained",
]
TRIALS = 7
HERE = "@HERE@"
SPACES = {"flexibert": "mlm", "nlu-tiny": "mlm", "gpt2": "lm", "rnn": "lm"}
"""Trained with which lesson; their folders are named by the space."""
LESSON = ["--steps", "2", "--batch-size", "8", "--max-length", "16", "--threads", "1", "--validation-rows", "20"]
PERIOD = 61


def make_folder(folder: Path) -> None:
    """A checkpoint, data, a finished run of `compress` and one of `train`."""
    with inside(folder):
        save_model(Path("bert"), "bert", seed=2, **SMALLER)
        write_rows(Path("rows.csv"), 300)
        write_text(Path("text.txt"))
        run_cli([*COMPRESS, TRIALS])
        run_cli(TRAIN)
        for space, lesson in SPACES.items():
            config = write_design(Path(f"{space}.json"), space)
            words = ["train", "--space", space, "--config", config, "--lesson", lesson, "--corpus", "text.txt"]
            run_cli([*words, "--tokenizer", "words", *LESSON, "--out", space])
            simplify_weights(Path(space, "model", "model.safetensors"))
        for page in Path().glob("*/*.html"):
            page.write_text("")


def simplify_weights(path: Path) -> None:
    """A wave in place of the weights; names, shapes and types stay."""
    with safe_open(path, "pt") as file:
        tensors, said = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    for name, tensor in tensors.items():
        if tensor.is_floating_point():
            wave = (0.05 * torch.cos(2.4 * torch.arange(PERIOD)))[torch.arange(tensor.numel()) % PERIOD]
            tensors[name] = (wave + (tensor.dim() == 1)).reshape(tensor.shape).to(tensor.dtype).contiguous()
    save_file(tensors, path, metadata=said)


def replace_path(folder: Path, old: str, new: str) -> None:
    """In every text file of the folder."""
    for path in (path for path in folder.rglob("*") if path.suffix in (".json", ".journal")):
        text = path.read_text()
        if old in text:
            path.write_text(text.replace(old, new))


def unpack(place: Path) -> Path:
    """The folder as it was, below `place`."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(place, filter="data")
    folder = (place / "old").resolve()
    replace_path(folder, HERE, str(folder))
    return folder


def strip_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve() / "old"
        folder.mkdir()
        make_folder(folder)
        replace_path(folder, str(folder), HERE)
        with tarfile.open(ARCHIVE, "w:gz", compresslevel=9) as archive:
            archive.add(folder, "old", filter=strip_owner)


if __name__ == "__main__":
    main()
