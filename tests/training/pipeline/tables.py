"""Small files in the layout of GLUE and SQuAD."""

import json
from pathlib import Path

import numpy as np

GOOD, BAD = ("good", "great", "fine"), ("bad", "poor", "dull")


def glue_folder(folder: Path, *, rows: int = 48) -> Path:
    """CoLA without a header, RTE with pairs, MNLI with both dev files; test files for CoLA and MNLI."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(2, size=rows)
    words = [f"the film was {rng.choice((BAD, GOOD)[kind])}" for kind in kinds]
    write(
        folder / "CoLA",
        {"train": "", "dev": ""},
        [f"x\t{kind}\t\t{text}" for kind, text in zip(kinds, words, strict=True)],
    )
    answers = ("not_entailment", "entailment")
    pairs = [f"{n}\t{words[n]}\tit was good\t{answers[kind]}" for n, kind in enumerate(kinds)]
    write(folder / "RTE", dict.fromkeys(("train", "dev"), "index\tsentence1\tsentence2\tlabel"), pairs)
    three = ("entailment", "neutral", "contradiction")
    many = [f"{n}\t{words[n]}\tit was good\t{three[n % 3]}" for n in range(rows)]
    header = "index\tsentence1\tsentence2\tgold_label"
    write(folder / "MNLI", dict.fromkeys(("train", "dev_matched", "dev_mismatched"), header), many)
    (folder / "CoLA" / "test.tsv").write_text("index\tsentence\n0\tthe film was good\n1\tfilm the\n")
    (folder / "MNLI" / "test_mismatched.tsv").write_text("index\tsentence1\tsentence2\n7\ta b\tc d\n")
    return folder


def write(folder: Path, headers: dict[str, str], lines: list[str]) -> None:
    folder.mkdir(parents=True)
    for name, header in headers.items():
        (folder / f"{name}.tsv").write_text("\n".join([*([header] if header else []), *lines]) + "\n")


def squad_folder(folder: Path, *, version: int = 2, paragraphs: int = 12) -> Path:
    """Questions about who is where; in version 2 every third has no answer."""
    folder.mkdir(parents=True)
    made = []
    for number in range(paragraphs):
        context = f"Person {number} lives in house {number * 7} near the river."
        asked = {"id": f"{number}a", "question": "Where is the house?"}
        answer = {"text": f"house {number * 7}", "answer_start": context.index("house")}
        qas = [{**asked, "answers": [answer], "is_impossible": False}]
        if version == 2 and number % 3 == 0:
            qas.append({"id": f"{number}b", "question": "Who is king?", "answers": [], "is_impossible": True})
        made.append({"context": context, "qas": qas})
    for name in ("train-v.json", "dev-v.json"):
        (folder / name).write_text(json.dumps({"version": "x", "data": [{"title": "t", "paragraphs": made}]}))
    return folder
