"""Batches for looking at untrained networks: seeded, real text, no padding, numbered among themselves."""

from pathlib import Path

import numpy as np
import pytest

from archwright.data.encoding import NO_TARGET
from archwright.data.public_data import public_data
from archwright.data.text.corpus import cached_lines
from archwright.data.text.snippets import (
    Snippets,
    TextEncoder,
    checkpoint_encoder,
    gpt2_encoder,
    snippets,
    window,
    word_encoder,
)
from archwright.errors import BadInput


@pytest.fixture(scope="module")
def text(data_dir: Path) -> Path:
    return data_dir / "wikitext-2" / "valid.txt"


def some(text: Path, vocabulary: TextEncoder, loss: str = "lm", **changes: object) -> Snippets:
    settings: dict[str, object] = {"rows": 6, "length": 32, "seed": (0, 0), **changes}
    return snippets(text, vocabulary, loss, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", ["electra", "mlm", "lm", "published"])
def test_shapes_and_numbers(loss: str, text: Path) -> None:
    found = some(text, word_encoder(text), loss)
    assert found.input_ids.shape == found.labels.shape == (6, 32)
    used = set(found.input_ids.ravel()) | (set(found.labels[found.labels != NO_TARGET]) if loss != "electra" else set())
    assert used == set(range(found.vocabulary))


def test_the_seed_decides(text: Path) -> None:
    vocabulary = word_encoder(text)
    one, same, other = (some(text, vocabulary, seed=seed).input_ids for seed in ((0, 0), (0, 0), (0, 1)))
    assert (one == same).all() and not (one == other).all()


def test_windows_are_the_text_itself(text: Path) -> None:
    vocabulary, lines = word_encoder(text), cached_lines(text)
    joined = " ".join(map(str, vocabulary.encode("\n".join(lines + lines))))
    starts = set()
    for seed in range(8):
        found = " ".join(map(str, window(lines, vocabulary, 50, np.random.default_rng(seed), text)))
        assert f" {found} " in f" {joined} "
        starts.add(found)
    assert len(starts) == 8


def test_a_text_that_is_short_goes_round_and_one_that_is_too_short_is_told(tmp_path: Path) -> None:
    file = tmp_path / "short.txt"
    file.write_text("a b c d\ne f g h\n")
    assert some(file, word_encoder(file), rows=2, length=6).input_ids.shape == (2, 6)
    with pytest.raises(BadInput, match=r"short\.txt has 10 tokens"):
        some(file, word_encoder(file), rows=2, length=11)
    file.write_text("\n \n")
    with pytest.raises(BadInput, match="no text"):
        some(file, word_encoder(file))


def grams(rows: np.ndarray) -> set[tuple[int, ...]]:
    """All runs of six tokens."""
    return {tuple(row[start : start + 6]) for row in rows.tolist() for start in range(len(row) - 5)}


def test_rows_that_are_held_out_share_no_line_with_the_others(tmp_path: Path) -> None:
    file = tmp_path / "numbers.txt"
    file.write_text("\n".join(" ".join(str(10 * line + word) for word in range(10)) for line in range(100)))
    found = some(file, word_encoder(file), "mlm", rows=60, length=32, held_out=20)
    words = some(file, word_encoder(file), "lm", rows=60, length=32, held_out=20).input_ids
    assert grams(words[:40]) and grams(words[-20:]) and not grams(words[:40]) & grams(words[-20:])
    assert found.input_ids.shape == (60, 32) and found.input_ids.max() < found.vocabulary
    mixed = some(file, word_encoder(file), "lm", rows=60, length=32).input_ids
    assert grams(mixed[:40]) & grams(mixed[-20:])


def test_a_text_of_one_line_has_none_to_hold_out(tmp_path: Path) -> None:
    file = tmp_path / "line.txt"
    file.write_text("a b c d e f g h\n")
    with pytest.raises(BadInput, match="has one line"):
        some(file, word_encoder(file), "mlm", rows=4, length=4, held_out=2)
    file.write_text("a b c d e f g h\ni j\n")
    with pytest.raises(BadInput, match=r"line\.txt \(validation part\) has 3 tokens"):
        some(file, word_encoder(file), "mlm", rows=4, length=4, held_out=2)


def test_pieces_of_bert_know_unknown_words(minilm: Path) -> None:
    vocabulary = checkpoint_encoder(str(minilm))
    assert vocabulary.size == 30522 and vocabulary.mask_id == 103
    assert vocabulary.encode("a <unk> film") == [1037, 100, 2143]


def test_byte_pairs_of_gpt2(data_dir: Path, tmp_path: Path) -> None:
    vocabulary = gpt2_encoder(data_dir / "gpt2-bpe")
    assert vocabulary.size == 50257 and vocabulary.encode("Hello world") == [15496, 995]
    with pytest.raises(BadInput, match=r"encoder\.json"):
        gpt2_encoder(tmp_path)


def test_public_data_is_found_where_the_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tables").mkdir()
    monkeypatch.setenv("ARCHWRIGHT_DATA", str(tmp_path))
    assert public_data("tables", origin="somewhere", option="--data") == tmp_path / "tables"
    with pytest.raises(BadInput, match=r"download it from somewhere, then give --data PATH"):
        public_data("no such table", origin="somewhere", option="--data")
