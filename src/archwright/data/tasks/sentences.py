"""Token classification: sentences whose words have tags, of CoNLL-style files, tables with lists, or the hub."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archwright.data.encoding import (
    NO_TARGET,
    TEXTS_PER_CALL,
    Encoded,
    Tokenized,
    check_length,
    flat,
    join_parts,
    slices,
    token_lengths,
    token_types,
)
from archwright.data.files import decode_utf8, is_unicode, quote, quote_all, read_bytes
from archwright.data.tasks.hub import PREFIX, hub_lines
from archwright.data.tasks.rows import Positions, TextRows, UnsplitTask
from archwright.data.tasks.table_files import (
    PACKED,
    Line,
    Lines,
    ending_of,
    holds_rows,
    read_rows,
    split_lines,
    unpack,
)
from archwright.data.tasks.tables import Columns, HeldOut, value_of
from archwright.data.tasks.targets import sorted_labels
from archwright.errors import BadInput
from archwright.logs import logger
from archwright.progress import progress
from archwright.tasks.token_classification import marks_spans

ENDINGS = (".conll", ".conll2003", ".bio", ".iob", ".iob2")
"""Files of words and tags by their name alone; others are read as such with --task tokens."""
DOCUMENT = "-DOCSTART-"
"""The word that stands for the beginning of a document in CoNLL's files."""
FEWEST_ROWS = 10
USUAL_NAMES = {"text": {"tokens", "words"}, "label": {"tags", "ner_tags", "labels"}}
"""Names that columns of words and of tags often have."""
SPANS = "judged by entity F1: spans of the tags, exactly the same words and type"
PLAIN = "judged by the share of words with the right tag (their micro F1): the tags mark no spans with B- and I-"


@dataclass(frozen=True, eq=False)
class TaggedWords:
    """One file's worth of sentences."""

    source: str
    words: list[list[str]]
    tags: list[list[str]]


@dataclass(frozen=True, eq=False)
class Sentences(TextRows):
    """Sentences whose words have tags."""

    words: list[list[str]]
    tags: list[NDArray[np.int64]]
    """Of every sentence the ids of its tags."""

    def __len__(self) -> int:
        return len(self.words)

    def take(self, rows: Positions) -> "Sentences":
        return Sentences([self.words[row] for row in rows], [self.tags[row] for row in rows])

    @property
    def texts(self) -> list[str]:
        """The sentences as a network reads them: words with blanks between, as they stand in plain text."""
        return [" ".join(words) for words in self.words]

    @property
    def columns(self) -> list[list[str]]:
        return [self.texts]

    @property
    def classes(self) -> set[int]:
        return set(np.concatenate(self.tags).tolist())

    def encode(self, tokenizer: Any, max_length: int) -> Encoded:
        """The first token of a word has its tag, the others have none; so has what is cut off."""
        check_length(max_length, tokenizer, room=tokenizer.num_special_tokens_to_add() + 1)
        if not tokenizer.is_fast:
            raise BadInput(
                f"tags of words need a tokenizer that tells where its tokens stand, got {type(tokenizer).__name__}, "
                "which does not; save a fast one beside the weights (tokenizer.json)."
            )
        parts: list[Tokenized] = []
        targets: list[NDArray[np.int16]] = []
        texts = self.texts
        with progress("tokenize", len(self), "texts") as bar:
            for some in slices(len(self), TEXTS_PER_CALL):
                options = {"truncation": True, "max_length": max_length, "return_attention_mask": False}
                output = tokenizer(texts[some], **options, return_offsets_mapping=True)
                parts.append(Tokenized(flat(output["input_ids"], np.int32), token_types(output), token_lengths(output)))
                places = zip(self.words[some], self.tags[some], output["offset_mapping"], strict=True)
                targets += [first_piece_tags(words, tags, offsets) for words, tags, offsets in places]
                bar.advance(some.stop - some.start)
        tagged, total = sum(int((row != NO_TARGET).sum()) for row in targets), sum(map(len, self.tags))
        if tagged < total:
            what = "%s of %s words have no token (they are cut at --max-length %d, or blank) and are not judged"
            logger.warning(what, f"{total - tagged:,}", f"{total:,}", max_length)
        table = np.full((len(self), max(map(len, targets))), NO_TARGET, dtype=np.int16)
        for row, values in enumerate(targets):
            table[row, : len(values)] = values
        return replace(join_parts(parts, table, tokenizer), per_word=True)


def first_piece_tags(words: list[str], tags: NDArray[np.int64], offsets: list[tuple[int, int]]) -> NDArray[np.int16]:
    """The tag of a word at its first token, -100 elsewhere; offsets are where tokens stand in the joined words.

    A token belongs to the word in which its last character stands: some tokenizers count the blank before a word to it.
    """
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    starts = ends - [len(word) for word in words]
    first, after = np.array(offsets).reshape(-1, 2).T
    last = after - 1
    word = np.minimum(np.searchsorted(ends, last, side="right"), len(words) - 1)
    inside = np.flatnonzero((after > first) & (last >= starts[word]) & (last < ends[word]))  # special tokens are empty
    known, places = np.unique(word[inside], return_index=True)
    targets = np.full(len(offsets), NO_TARGET, dtype=np.int16)
    targets[inside[places]] = tags[known]
    return targets


def are_sentences(request: Any, row: Mapping[str, Any] | None) -> bool:
    """Whether a user's rows are lists of words with lists of tags, or a file is known as such by its name."""
    if row is None:
        return request.train is not None and ending_of(request.train) in ENDINGS
    columns = request.columns.recognise(row, USUAL_NAMES)
    return isinstance(row.get(columns.text), list) and isinstance(row.get(columns.label), list)


def load_sentences(request: Any) -> UnsplitTask:
    """The user's files or hub data, tags as numbers."""
    refuse_options(request)
    if request.name is not None and request.name.startswith(PREFIX):
        lines, shares, note = hub_lines(request.name)
        sources = {split: f"{request.name} split {split!r}" for split in lines}
        files = {split: collect_sentences(rows, request.columns, sources[split]) for split, rows in lines.items()}
    else:
        if request.train is None:
            raise BadInput("tokens needs a file of words and tags with --train, and takes no --data.")
        held = HeldOut.of(request.validation, request.test, request.validation_role)
        paths = {"train": request.train, "validation": held.validation, "test": held.test}
        files = {split: read_sentences(path, request.columns) for split, path in paths.items() if path is not None}
        note, shares = held.note, dict(held.shares)
    raw = {split: tagged for split, (tagged, _) in files.items()}
    declared = files["train"][1]
    names, ids = tag_order(raw, declared, request.labels)
    if len(raw["train"].words) < FEWEST_ROWS:
        found = f"{raw['train'].source} has {len(raw['train'].words)} sentences"
        raise BadInput(f"{found}; at least {FEWEST_ROWS} are needed (a blank line ends a sentence).")
    spans = marks_spans(names)
    splits = {split: number_tags(tagged, ids) for split, tagged in raw.items()}
    return UnsplitTask(
        name=request.train.name if request.train else request.name,
        kind="tokens",
        metric="entity_f1" if spans else "token_accuracy",
        train=splits["train"],
        validation=splits.get("validation"),
        test=splits.get("test"),
        shares=shares,
        note="; ".join(filter(None, (note, SPANS if spans else PLAIN))),
        labels=names,
        numbered=declared is not None,
    )


def refuse_options(request: Any) -> None:
    """What is only for other kinds of tasks."""
    given = {
        "--data": request.data,
        "--text-pair-column": request.columns.pair,
        "--choice-columns": request.columns.choices,
        "--regression": request.regression,
    }
    wrong = [option for option, value in given.items() if value]
    if wrong:
        raise BadInput(f"tokens has a list of words and a list of tags per sentence; leave out {', '.join(wrong)}.")


Declared = tuple[str, ...] | None
"""Names of the tags in the order of their numbers, where the data declares them."""


def read_sentences(path: Path, columns: Columns) -> tuple[TaggedWords, Declared]:
    """All sentences of a file: a table by its ending, anything else a word and its tag per line."""
    if holds_rows(path) and ending_of(path) != ".tsv":
        return collect_sentences(read_rows(path), columns, str(path))
    raw = unpack(path) if path.suffix.lower() == PACKED else read_bytes(path)
    words, tags = [], []
    for sentence in conll_sentences(decode_utf8(raw, str(path)), str(path)):
        words.append([word for word, _ in sentence])
        tags.append([tag for _, tag in sentence])
    return TaggedWords(str(path), words, tags), None


def conll_sentences(content: str, source: str) -> Iterator[list[tuple[str, str]]]:
    """First and last column of every line, sentence by sentence.

    Fields are separated by tabs where there is one, else by blanks. Lines without a tab between others with tabs are
    comments if they begin with #. A line that begins a document is left out.
    """
    lines, tabs = split_lines(content), "\t" in content
    sentence: list[tuple[str, str]] = []
    columns: int | None = None
    for number, line in enumerate(lines, start=1):
        fields = line.rstrip("\n").split("\t") if tabs else line.split()
        if not line.strip():
            if sentence:
                yield sentence
            sentence = []
        elif fields[0].startswith(DOCUMENT) or (tabs and len(fields) == 1 and line.startswith("#")):
            continue
        else:
            columns = len(fields) if columns is None else columns
            if len(fields) < 2 or len(fields) != columns:
                rule = f"line {number} of {source} must hold a word and its tag in {max(2, columns)} columns"
                way = "separate columns by one tab or by blanks, sentences by a blank line"
                raise BadInput(f"{rule}, got {quote(line.strip())}; {way}.")
            sentence.append((fields[0].strip(), fields[-1].strip()))
    if sentence:
        yield sentence


def collect_sentences(lines: Lines, columns: Columns, source: str) -> tuple[TaggedWords, Declared]:
    """Words and tags of rows with two lists."""
    if not lines:
        raise BadInput(f"{source} has no rows; a data file needs at least one.")
    columns = columns.recognise(lines[0][1], USUAL_NAMES, source)
    words, tags, empty = [], [], 0
    for line in lines:
        both = [list_of(line, column, source) for column in (columns.text, columns.label)]
        if len(both[0]) != len(both[1]):
            rule = f"line {line[0]} of {source} must have as many tags as words"
            raise BadInput(f"{rule}, got {len(both[0])} words and {len(both[1])} tags; correct the row.")
        if not both[0]:
            empty += 1
            if not columns.skip_empty:
                raise BadInput(f"line {line[0]} of {source} has no words; remove the row, or take --skip-empty.")
            continue
        words.append([text_word(word, line, columns.text, source) for word in both[0]])
        tags.append([str(tag).strip() for tag in both[1]])
    if empty:
        logger.warning("%s: %s of %s rows have no words and are left out", source, f"{empty:,}", f"{len(lines):,}")
    names = lines.classes.get(columns.label)
    return TaggedWords(source, words, tags), None if names is None else tuple(names)


def list_of(line: Line, column: str, source: str) -> list[Any]:
    value = value_of(line, column, source)
    if not isinstance(value, list | tuple):
        rule = f"line {line[0]} of {source}: {quote(column)} must be a list, one entry per word"
        raise BadInput(f"{rule}, got {quote(value)}; name the columns with --text-column and --label-column.")
    return list(value)


def text_word(word: Any, line: Line, column: str, source: str) -> str:
    if not isinstance(word, str) or not is_unicode(word):
        raise BadInput(f"line {line[0]} of {source}: {quote(column)} must hold words, got {quote(word)}.")
    return word


def tag_order(
    raw: dict[str, TaggedWords], declared: Declared, forced: tuple[str, ...] | None
) -> tuple[tuple[str, ...], dict[str, int]]:
    """Tags in id order, and the id of each as the data writes it.

    Those of all files count: a rare tag may be missing among the training rows. `forced` ones (of a checkpoint, or
    --labels) may be more than the data has.
    """
    found = sorted_labels(tag for tagged in raw.values() for tags in tagged.tags for tag in tags)
    if len(found) < 2:
        raise BadInput(f"{raw['train'].source} has only the tag {quote_all(found)}; two are needed.")
    names = found if declared is None else declared
    if forced is None:
        return names, {tag: index for index, tag in enumerate(names)}
    if set(found) <= {str(index) for index in range(len(forced))}:
        return forced, {tag: int(tag) for tag in found}
    for spelling in (str, str.casefold):
        ids = {spelling(tag): index for index, tag in enumerate(forced)}
        if len(ids) == len(forced) and {spelling(tag) for tag in found} <= set(ids):
            return forced, {tag: ids[spelling(tag)] for tag in found}
    missing = [tag for tag in found if tag.casefold() not in {name.casefold() for name in forced}]
    rule = f"the tags of the data must be among {quote_all(forced)}, got {quote_all(missing)}"
    raise BadInput(f"{rule}; rename them, or take --head new.")


def number_tags(tagged: TaggedWords, ids: dict[str, int]) -> Sentences:
    return Sentences(tagged.words, [np.array([ids[tag] for tag in tags], dtype=np.int64) for tags in tagged.tags])
