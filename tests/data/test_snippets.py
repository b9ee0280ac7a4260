"""Batches for looking at untrained networks: seeded, real text, no padding, numbered among themselves."""

from pathlib import Path

import numpy as np
import pytest

from archwright.data.public_data import public_data
from archwright.data.text.snippets import CORRUPTIONS, NO_TARGET, Snippets, masked, replaced, snippets, window
from archwright.data.text.text_encoders import TextEncoder, checkpoint_encoder, gpt2_encoder, read, word_encoder
from archwright.errors import BadInput


@pytest.fixture(scope="module")
def text(data_dir: Path) -> Path:
    return data_dir / "wikitext-2" / "valid.txt"


def some(text: Path, vocabulary: TextEncoder, loss: str = "lm", **changes: object) -> Snippets:
    settings: dict[str, object] = {"rows": 6, "length": 32, "seed": (0, 0), **changes}
    return snippets(text, vocabulary, loss, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", CORRUPTIONS)
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
    vocabulary, lines = word_encoder(text), read(text)
    joined = " ".join(map(str, vocabulary.ids("\n".join(lines + lines))))
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


def test_replaced_tokens_are_labelled() -> None:
    windows = np.arange(40_000).reshape(4, -1) % 1000
    inputs, labels = replaced(windows, TextEncoder(lambda text: [], 1000, 0), np.random.default_rng(0))
    assert ((inputs != windows) == labels.astype(bool)).all()
    assert labels.mean() == pytest.approx(0.15, abs=0.01)


def test_masked_tokens_are_the_targets() -> None:
    windows = np.arange(40_000).reshape(4, -1) % 1000 + 1
    inputs, labels = masked(windows, TextEncoder(lambda text: [], 1001, 0), np.random.default_rng(0))
    chosen = labels != NO_TARGET
    assert chosen.mean() == pytest.approx(0.15, abs=0.01)
    assert (labels[chosen] == windows[chosen]).all() and (inputs[~chosen] == windows[~chosen]).all()
    assert (inputs[chosen] == 0).mean() == pytest.approx(0.8, abs=0.02)
    assert (inputs[chosen] == windows[chosen]).mean() == pytest.approx(0.1, abs=0.02)


def test_pieces_of_bert_know_unknown_words(minilm: Path) -> None:
    vocabulary = checkpoint_encoder(str(minilm))
    assert vocabulary.size == 30522 and vocabulary.mask == 103
    assert vocabulary.ids("a <unk> film") == [1037, 100, 2143]


def test_byte_pairs_of_gpt2(data_dir: Path, tmp_path: Path) -> None:
    vocabulary = gpt2_encoder(data_dir / "gpt2-bpe")
    assert vocabulary.size == 50257 and vocabulary.ids("Hello world") == [15496, 995]
    with pytest.raises(BadInput, match=r"encoder\.json"):
        gpt2_encoder(tmp_path)


def test_public_data_is_found_where_the_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tables").mkdir()
    monkeypatch.setenv("ARCHWRIGHT_DATA", str(tmp_path))
    assert public_data("tables", origin="somewhere", option="--data") == tmp_path / "tables"
    with pytest.raises(BadInput, match=r"download it from somewhere, then give --data PATH"):
        public_data("no such table", origin="somewhere", option="--data")
