"""The words of a command line: which command, which options; a mistake is one line with the nearest right word."""

import argparse
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NoReturn

from archwright.cli.output import STDOUT
from archwright.commands import Command
from archwright.configs.options import (
    Option,
    config_options,
    group_options,
    group_title,
    make_config,
    nearest,
    option_docs,
    option_groups,
)
from archwright.configs.yaml_file import read_config
from archwright.errors import BadInput

ABOUT = "Make language models smaller, and find small ones, without guessing."
COMPLETION = "completion"
"""A word that stands where a command does, and is none: it has no options, no config and no result."""
AMOUNT = re.compile(r"-?[\d.,_]+\s*[A-Za-z%]{0,3}")
"""What may follow an option whose amount may be left out: 25%, 6M, also a mistake such as 6MB."""
METAVARS: dict[type, str] = {int: "N", float: "X", str: "TEXT", Path: "PATH"}


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


@dataclass(frozen=True)
class Arguments:
    """What the user typed after the name of a command."""

    values: Mapping[str, Any]
    """Options of the command that were given, by name, still as text."""
    options_file: Path | None = None
    """--options, or --config where the command has no option of that name."""
    save_config: Path | None = None
    json: Path | None = None
    log_file: Path | None = None
    verbose: bool = False
    quiet: bool = False


def overview(commands: Mapping[str, Command]) -> str:
    """The answer to `archwright --help`."""
    width = max(map(len, commands), default=0)
    lines = "\n".join(f"  {name:{width}}  {command.summary}" for name, command in commands.items())
    examples = "\n".join(f"  {command.example}" for command in commands.values() if command.example)
    parts = ("usage: archwright COMMAND [options]", ABOUT, f"commands:\n{lines}", f"examples:\n{examples}")
    last = (
        "`archwright COMMAND --help` explains a command, `archwright --version` tells the version,\n"
        f"`archwright {COMPLETION} bash|zsh|fish` prints a script that completes command lines in your shell."
    )
    return "\n\n".join((*(parts if examples else parts[:-1]), last))


def check_command(name: str, commands: Collection[str]) -> None:
    if name not in commands:
        kind = "option" if name.startswith("-") else "command"
        way_out = nearest(name, commands) or f"; choose one of {', '.join(commands)}"
        raise BadInput(f"unknown {kind} {name!r}{way_out}")


def parse(name: str, command: Command, words: Sequence[str]) -> Arguments:
    """The words by option; BadInput for options that do not exist. Values are checked by `load_config`."""
    parser = build_parser(name, command, explain=False)
    for word in words:
        if word.startswith("--") and word.endswith("=--"):  # argparse would drop the value, and with it the option
            raise BadInput(f"{word.removesuffix('=--')} must have a value, got '--'.")
    namespace, unknown = parser.parse_known_args(mark_switches(words, command))
    if unknown:
        flag = unknown[0].split("=")[0]
        known = parser._option_string_actions
        what = f"option {flag}{nearest(flag, known)}" if flag.startswith("-") else f"word {unknown[0]!r}"
        parser.error(f"unknown {what}")
    given = {key: value for key, value in vars(namespace).items() if value is not None and value != []}
    common = {key.removeprefix(COMMON): given.pop(key) for key in list(given) if key.startswith(COMMON)}
    for key, text in common.items():
        if isinstance(text, str):  # all others are switches
            if not text.strip():
                flag = FLAGS[key][0]
                raise BadInput(f"{flag} must name a file, got an empty text.")
            common[key] = STDOUT if key == "json" and text == "-" else Path(text).expanduser()
    return Arguments(values=given, **common)


def mark_switches(words: Sequence[str], command: Command) -> list[str]:
    """Options whose amount may be left out, each with its amount in one word, or with `true` where none follows.

    argparse would take the next word for the amount, whatever it is.
    """
    flags = {option.flag for option in config_options(command.config).values() if option.switch_too}
    marked: list[str] = []
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        if word in flags:
            marked.append(f"{word}={following if AMOUNT.fullmatch(following) else 'true'}")
        elif not (marked and marked[-1] in {f"{flag}={word}" for flag in flags}):
            marked.append(word)
    return marked


def load_config(name: str, command: Command, arguments: Arguments) -> Any:
    """The config of the command: flags win over the file, the file over presets, presets over defaults."""
    file = arguments.options_file
    values = {**(read_config(file, command.config) if file else {}), **arguments.values}
    options = config_options(command.config)
    if missing := [option for option in options.values() if option.required and option.name not in values]:
        words = [positional_word(each) if each.name in command.positional else each.flag for each in missing]
        build_parser(name, command, explain=False).error(f"the following arguments are required: {', '.join(words)}")
    return make_config(command.config, values)


COMMON = "common_"
"""Begins the names of options that every command has, which a command's own options must not meet."""
FLAGS = {
    "options_file": ("--options", "Read options from this YAML file; those given beside it win."),
    "save_config": ("--save-config", "Write all options to this file as YAML, for --options; then do the work."),
    "json": ("--json", "Write the result to this file as JSON; - is the standard output, and nothing else goes there."),
    "log_file": ("--log-file", "Append log lines to this file."),
}
"""Options of every command that name a file."""


ALIASES = {"learning_rate": "--lr", "out": "--output-dir", "trials": "--n-trials"}
"""Names that other tools have for our options; understood, and not explained."""


def help_page(name: str, command: Command, *, whole: bool) -> str:
    """The answer to `--help`: what a newcomer needs, and how many options more there are; `whole`: all of them."""
    shown = frozenset(command.first) if command.first and not whole else None
    page = build_parser(name, command, explain=True, shown=shown).format_help()
    if shown is None:
        return page
    more = len(config_options(command.config)) - len(shown)
    return f"{page}\n{more} more options: archwright {name} --help-all\n"


def build_parser(name: str, command: Command, *, explain: bool, shown: frozenset[str] | None = None) -> Parser:
    """Every option of the config as `--kebab-case` below its group's title; those in `positional` without dashes.

    Only what the user gave lands in the namespace, so the config alone knows the defaults. Help texts, which read
    source files and every list of choices, are made only when `explain` asks for them, of the `shown` options (None:
    of all).
    """
    options = config_options(command.config)
    usage = ["archwright", name]
    for positional in (options[word] for word in command.positional):
        word = positional_word(positional)
        usage.append(word if positional.required else f"[{word}]")
    parser = Parser(
        f"archwright {name}", " ".join((*usage, "[options]")), command.summary, add_help=False, allow_abbrev=False
    )
    parser.formatter_class = Formatter
    parser.epilog = f"example:\n  {command.example}" if command.example else None
    for group in option_groups(command.config).values():
        section, docs = parser.add_argument_group(group_title(group)), option_docs(group) if explain else {}
        for option in group_options(group).values():
            text = help_text(option, docs.get(option.name, "")) if explain else ""
            if shown is not None and option.name not in shown:
                text = argparse.SUPPRESS
            if option.name in command.positional:
                nargs = "*" if option.several else "?"
                section.add_argument(option.name, metavar=positional_word(option), nargs=nargs, help=text)
            elif option.switch_too:
                section.add_argument(option.flag, metavar=option.metavar, help=text)
                no, hidden = f"--no-{option.flag[2:]}", argparse.SUPPRESS
                section.add_argument(no, dest=option.name, action="store_false", default=None, help=hidden)
            elif option.type is bool:
                section.add_argument(option.flag, default=None, help=text, action=argparse.BooleanOptionalAction)
            else:
                metavar = option.metavar or METAVARS[option.type]
                action = SplitWords if option.several else "store"
                section.add_argument(option.flag, dest=option.name, metavar=metavar, help=text, action=action)
                if alias := ALIASES.get(option.name):
                    section.add_argument(alias, dest=option.name, action=action, help=argparse.SUPPRESS)
    add_common_options(parser, own_config="config" in options)
    return parser


class SplitWords(argparse.Action):
    """An option that may be given several times, each time with several values between commas."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        words = [word.strip() for word in values.split(",") if word.strip()]
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or ()), *words])


def add_common_options(parser: argparse.ArgumentParser, *, own_config: bool) -> None:
    """What every command understands."""
    every = parser.add_argument_group("every command")
    for key, (flag, text) in FLAGS.items():
        flags = ["--config", flag] if key == "options_file" and not own_config else [flag]
        note = " (--config is another option here.)" if key == "options_file" and own_config else ""
        every.add_argument(*flags, dest=COMMON + key, metavar="FILE", help=text + note)
    every.add_argument("-h", "--help", action="help", help="Explain the options, and do nothing else.")
    every.add_argument("--help-all", action="help", help="Explain all of them.")
    every.add_argument(
        "-v", "--verbose", action="store_true", dest=COMMON + "verbose", default=None, help="Show log lines too."
    )
    every.add_argument(
        "--quiet", action="store_true", dest=COMMON + "quiet", default=None, help="Show nothing but errors."
    )


def positional_word(option: Option) -> str:
    return option.metavar or option.name.upper()


def help_text(option: Option, doc: str) -> str:
    """What the option means, its default, and one line per choice."""
    choices, default = option.choices(), option.field.default
    plain = ", ".join(name for name, text in choices.items() if not text)
    shown = ""
    if default not in (MISSING, None, False, "", ()) or (default == 0 and default is not False):
        value = ",".join(map(str, default)) if isinstance(default, tuple) else "on" if default is True else str(default)
        shown = f"(default: {value})"
    first = (doc, f"One of: {plain}." if plain else "", shown)
    described = (f"{name}: {text}" for name, text in choices.items() if text)
    return "\n".join((" ".join(part for part in first if part), *described)).replace("%", "%%")
