"""SQuAD (Rajpurkar et al. 2016, 2018): questions whose answers are parts of a text, from its original JSON files."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from archwright.data.files import decode_utf8, is_unicode, quote, read_bytes
from archwright.data.tasks.questions import QuestionRows
from archwright.data.tasks.rows import UnsplitTask
from archwright.errors import BadInput

ADDRESS = "https://rajpurkar.github.io/SQuAD-explorer/"
BROKEN_SHARE = 0.01
"""Questions whose answers are not in their contexts: up to this share is left out and said, more is an error."""
FEWEST_QUESTIONS = 10
FEWEST_ARTICLES = 7
"""Of a file that is cut into three splits: 15 % of fewer is none."""


def load_squad(data: Path | None) -> UnsplitTask:
    """SQuAD by the same protocol as GLUE: 30 % of train becomes validation, dev is the test set.

    Of a single file all splits are made, whole articles in one split: 15 % choose, 15 % test.
    """
    if data is None or not (data.is_file() or data.is_dir()):
        rule = "squad needs --data, the folder with its train*.json and dev*.json or one such file"
        raise BadInput(f"{rule}, got {'nothing' if data is None else repr(str(data))}; the original is at {ADDRESS}")
    single = data.is_file()
    paths = [data] if single else [only_file(data, "train*.json"), only_file(data, "dev*.json")]
    contents = [read_squad(path) for path in paths]
    unanswerable = any(None in content.spans for content in contents)
    articles = contents[0].articles
    if single and len(set(articles)) < FEWEST_ARTICLES:
        raise BadInput(f"{data} has {len(set(articles))} articles; three splits need {FEWEST_ARTICLES}.")
    about = f"all splits are of {data.name}, not the official ones" if single else f"{paths[1].name} is the test set"
    return UnsplitTask(
        name="squad",
        kind="qa",
        metric="squad_v2_f1" if unanswerable else "squad_f1",
        train=contents[0].rows(unanswerable, together=articles if single else None),
        test=None if single else contents[1].rows(unanswerable),
        shares={"validation": 0.15, "test": 0.15} if single else {"validation": 0.3},
        note="; ".join(filter(None, (about, *(content.note for content in contents)))),
        how=f"by {'articles' if single else 'paragraphs'} with seed {{seed}}",
    )


def only_file(folder: Path, pattern: str) -> Path:
    """The one file of this pattern."""
    paths = sorted(folder.glob(pattern))
    if len(paths) == 1:
        return paths[0]
    names = ", ".join(path.name for path in paths[:6]) or "none"
    raise BadInput(
        f"{str(folder)!r} must have exactly one file {pattern}, it has {names}; the original is at {ADDRESS}"
    )


@dataclass
class Content:
    """The questions of one file, as they are read."""

    source: str
    questions: list[str] = field(default_factory=list)
    contexts: list[str] = field(default_factory=list)
    paragraphs: list[int] = field(default_factory=list)
    articles: list[int] = field(default_factory=list)
    answers: list[tuple[str, ...]] = field(default_factory=list)
    spans: list[tuple[int, int] | None] = field(default_factory=list)
    """Where the first answer that is there begins and ends in the context; None for questions without answer."""
    moved: int = 0
    """Answers that are not where the file says, but elsewhere in the context."""
    lost: int = 0
    """Questions left out because none of their answers is in the context."""

    @property
    def note(self) -> str:
        name = Path(self.source).name
        moved = f"{self.moved} answers of {name} were not at their answer_start and were found elsewhere"
        lost = f"{self.lost} questions of {name} left out, their answers are not in the context"
        part = f"{name}: part of the official data, not comparable with published numbers"
        notes = {part: "subset" in name, moved: self.moved, lost: self.lost}
        return "; ".join(note for note, applies in notes.items() if applies)

    def rows(self, unanswerable: bool, *, together: list[int] | None = None) -> QuestionRows:
        """`together` numbers what stays in one split, question by question: by default the paragraphs."""
        whole = np.array(self.paragraphs if together is None else together, dtype=np.int64)
        spans = np.array([(-1, -1) if span is None else span for span in self.spans], dtype=np.int64).reshape(-1, 2)
        return QuestionRows(self.questions, self.contexts, whole, spans, self.answers, unanswerable)


def read_squad(path: Path) -> Content:
    """All questions of a file; those whose answers cannot be found are left out when they are few."""
    content = Content(str(path))
    numbered = enumerate(
        (a, paragraph, f"data[{a}].paragraphs[{p}] of {path}")
        for a, article in enumerate(items(json_file(path), "data", str(path)))
        for p, paragraph in enumerate(items(article, "paragraphs", f"data[{a}] of {path}"))
    )
    for number, (article, paragraph, where) in numbered:
        context = text_in(paragraph, "context", where)
        for q, entry in enumerate(items(paragraph, "qas", where)):
            if add(content, entry, context, f"qas[{q}] of {where}"):
                content.paragraphs.append(number)
                content.articles.append(article)
    check(content)
    return content


def add(content: Content, entry: Any, context: str, where: str) -> bool:
    """Puts one question into the content, unless its answers are lost."""
    question, given = text_in(entry, "question", where), items(entry, "answers", where)
    if entry.get("is_impossible"):
        given = []
    located = [locate_answer(answer, context, f"answers[{i}] of {where}") for i, answer in enumerate(given)]
    spans = [span for span, _ in located if span is not None]
    if located and not spans:
        content.lost += 1
        return False
    content.moved += sum(moved for _, moved in located)
    content.questions.append(question)
    content.contexts.append(context)
    content.answers.append(tuple(answer["text"] for answer in given))
    content.spans.append(spans[0] if spans else None)
    return True


def locate_answer(answer: Any, context: str, where: str) -> tuple[tuple[int, int] | None, bool]:
    """Where an answer is in the context without blanks around it, if at all; and whether it was elsewhere than said."""
    text = field_in(answer, "text", str, "a text", where)
    start = field_in(answer, "answer_start", int, "a whole number", where)
    core = text.strip()
    if not core:
        return None, False
    said = start + len(text) - len(text.lstrip())
    if said >= 0 and context.startswith(core, said):
        return (said, said + len(core)), False
    starts = [start for start in range(len(context)) if context.startswith(core, start)]
    if not starts:
        return None, False
    nearest = min(starts, key=lambda start: abs(start - said))
    return (nearest, nearest + len(core)), True


def check(content: Content) -> None:
    """Refuses a file with too few questions, too many lost answers, or without any answer."""
    total = len(content.questions) + content.lost
    if content.lost > BROKEN_SHARE * total:
        counts = f"{content.lost} of {total} questions have no answer that is in their context"
        raise BadInput(f"{content.source} is damaged: {counts}; the original is at {ADDRESS}")
    if total < FEWEST_QUESTIONS:
        raise BadInput(f"{content.source} has {total} questions; at least {FEWEST_QUESTIONS} are needed.")
    if len(set(content.paragraphs)) < 2:
        raise BadInput(
            f"{content.source} is about one paragraph; two are needed, as a paragraph is never in two splits."
        )
    if not any(content.answers):
        raise BadInput(f"{content.source} has no answers, only questions; a file with answers is needed.")


def json_file(path: Path) -> Any:
    """What a JSON file holds."""
    text = decode_utf8(read_bytes(path), str(path))
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"{path} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except (ValueError, RecursionError):
        raise BadInput(f"{path} is not JSON that can be read: nested too deeply, or a number too long.") from None


def items(holder: Any, key: str, where: str) -> list[Any]:
    values: list[Any] = field_in(holder, key, list, "a list", where)
    return values


def text_in(holder: Any, key: str, where: str) -> str:
    """A text that is there, has words, and is real Unicode."""
    text: str = field_in(holder, key, str, "a text", where)
    if not text.strip() or not is_unicode(text):
        raise BadInput(f"{where} has an empty or broken {key}: {quote(text)}; correct it or remove it.")
    return text


def field_in(holder: Any, key: str, kind: type, words: str, where: str) -> Any:
    """What an object of the file has under a key, of the kind that SQuAD's layout says."""
    value = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool):
        got = quote(value) if isinstance(holder, dict) and key in holder else "none"
        raise BadInput(f"{where} must have {words} {key!r} as SQuAD's files do, got {got}; see {ADDRESS}")
    return value
