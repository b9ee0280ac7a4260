"""Language modelling as a task: the user's own texts in blocks of equal length."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from archwright.data.encoding import Encoded, check_length
from archwright.data.tasks.rows import UnsplitTask, sample_rows
from archwright.data.tasks.tables import HeldOut
from archwright.data.text.corpus import cut_blocks, next_tokens, read_text, tokenize_text
from archwright.errors import BadInput
from archwright.tasks import TASK_KINDS


@dataclass(frozen=True, eq=False)
class Passage:
    """A text; its rows are blocks of tokens, which exist only when it is tokenized."""

    source: str
    text: str
    blocks: int = 0
    """How many of its blocks to keep, chosen at random; 0 for all."""
    seeds: tuple[int, ...] = ()

    def __len__(self) -> int:
        """Characters, as blocks are not known yet."""
        return len(self.text)

    def split(self, shares: Mapping[str, float], seed: int) -> dict[str, "Passage"]:
        """Contiguous parts in the order train and shares, cut at the ends of lines; the seed does not matter."""
        names, sizes, bounds = ["train", *shares], [1 - sum(shares.values()), *shares.values()], [0]
        for share in np.cumsum(sizes)[:-1]:
            near = round(share * len(self.text))
            end = self.text.find("\n", near)
            bounds.append(near if end < 0 else end + 1)  # a text without line ends after it is cut right there
        bounds.append(len(self.text))
        return {
            name: replace(self, source=f"{self.source} ({name} part)" if shares else self.source, text=self.text[a:b])
            for name, a, b in zip(names, bounds, bounds[1:], strict=False)
        }

    def sample(self, size: int, seeds: tuple[int, ...]) -> "Passage":
        return replace(self, blocks=size, seeds=seeds)

    def encode(self, tokenizer: Any, max_length: int) -> Encoded:
        check_length(max_length, tokenizer, room=2)
        ids = tokenize_text(self.text, tokenizer)
        if len(ids) < max_length:
            way = "give more text or a smaller --max-length"
            raise BadInput(
                f"{self.source} has {len(ids)} tokens, less than one block of --max-length {max_length}; {way}."
            )
        blocks = cut_blocks(ids, max_length)
        if 0 < self.blocks < len(blocks):
            blocks = blocks[sample_rows(len(blocks), self.blocks, self.seeds)]
        offsets = np.arange(len(blocks) + 1, dtype=np.int64) * max_length
        return Encoded(blocks.ravel(), offsets, None, next_tokens(blocks), tokenizer.pad_token_id or 0)


def load_passages(train: Path, validation: Path | None, test: Path | None, *, role: str = "choose") -> UnsplitTask:
    """The user's texts; the role is that of a validation file without a test file, as for other files."""
    files = HeldOut.of(validation, test, role)

    def passage(path: Path | None) -> Passage | None:
        return None if path is None else Passage(str(path), read_text(path))

    return UnsplitTask(
        name=train.name,
        kind="lm",
        metric=TASK_KINDS["lm"].metric,
        train=Passage(str(train), read_text(train)),
        validation=passage(files.validation),
        test=passage(files.test),
        shares=files.shares,
        note=files.note,
        how="in the order of the text",
    )
