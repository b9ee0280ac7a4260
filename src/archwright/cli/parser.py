"""The words of a command line: which command, which options; a mistake is one line with the nearest right word."""

import argparse
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, NoReturn

from archwright.cli.arguments import add_group, given_values, is_required
from archwright.cli.values import nearest, path
from archwright.commands import Command
from archwright.errors import BadInput

ABOUT = "Make language models smaller, and find small ones, without guessing."


class Parser(argparse.ArgumentParser):
    """argparse with one line for a mistake instead of the usage and an exit."""

    def error(self, message: str) -> NoReturn:
        hint = "" if message.endswith("?") else f"; `{self.prog} --help` explains the options"
        raise BadInput(message.removeprefix("argument ") + hint)


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of a help text: after the explanation, one line per choice, hung where it does not fit."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        first, *choices = text.splitlines() or [""]
        hung = (part for line in choices for part in textwrap.wrap(line, width, subsequent_indent="  "))
        return [*textwrap.wrap(first, width), *hung]


def overview(commands: Mapping[str, Command]) -> str:
    """The answer to `archwright --help`."""
    width = max(map(len, commands), default=0)
    listed = "\n".join(f"  {name:{width}}  {command.summary}" for name, command in commands.items())
    examples = "\n".join(f"  {command.example}" for command in commands.values() if command.example)
    parts = ("usage: archwright COMMAND [options]", ABOUT, f"commands:\n{listed}", f"examples:\n{examples}")
    last = "`archwright COMMAND --help` explains a command, `archwright --version` tells the version."
    return "\n\n".join((*(parts if examples else parts[:-1]), last))


def check_command(name: str, commands: Mapping[str, Command]) -> None:
    if name not in commands:
        kind = "option" if name.startswith("-") else "command"
        way_out = nearest(name, commands) or f"; choose one of {', '.join(commands)}"
        raise BadInput(f"unknown {kind} {name!r}{way_out}")


def parse(name: str, command: Command, words: Sequence[str]) -> dict[str, Any]:
    """The options the user gave, by field name, and `json` (when given) and `quiet`."""
    parser = parser_of(name, command, explain=False)
    namespace, unknown = parser.parse_known_args(words)
    if unknown:
        parser.error(f"unknown {_unknown(unknown[0], parser)}")
    return given_values(vars(namespace))


def parser_of(name: str, command: Command, *, explain: bool) -> Parser:
    usage = " ".join(("archwright", name, *_positional_words(command), "[options]"))
    parser = Parser(f"archwright {name}", usage, command.summary, add_help=False, allow_abbrev=False)
    parser.formatter_class = Formatter
    parser.epilog = f"example:\n  {command.example}" if command.example else None
    for group in command.option_types:
        add_group(parser, group, positional=command.positional, explain=explain)
    every = parser.add_argument_group("every command")
    every.add_argument("--json", type=path, metavar="FILE", help="Write the result to this file as JSON.")
    every.add_argument("-h", "--help", action="help", help="Explain the options, and do nothing else.")
    every.add_argument("--quiet", action="store_true", help="Show nothing but errors.")
    return parser


def _positional_words(command: Command) -> Iterator[str]:
    known = {field.name: field for group in command.option_types for field in fields(group)}
    for name in command.positional:
        word = known[name].metadata.get("metavar") or name.upper()
        yield word if is_required(known[name]) else f"[{word}]"


def _unknown(word: str, parser: argparse.ArgumentParser) -> str:
    if not word.startswith("-"):
        return f"word {word!r}"
    option = word.split("=")[0]
    return f"option {option}{nearest(option, parser._option_string_actions)}"
