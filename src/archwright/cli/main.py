"""`archwright COMMAND ...`: parse, call the job, show what it answers."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import archwright
from archwright.cli.exit_codes import BAD_INPUT, OK, ending
from archwright.cli.json_output import check_writable, write_json
from archwright.cli.parser import check_command, overview, parse, parser_of
from archwright.commands import COMMANDS, Command, call
from archwright.progress import quiet as no_progress

HELP = ("-h", "--help")
ANSWERS: dict[str, Callable[[Mapping[str, Command]], str]] = {
    **dict.fromkeys(HELP, overview),
    "--version": lambda _: f"archwright {archwright.__version__}",
}


def main(argv: Sequence[str] | None = None, commands: Mapping[str, Command] | None = None) -> int:
    """The exit code: 0 done, 1 failed, 2 bad input, 130 interrupted."""
    words = sys.argv[1:] if argv is None else list(argv)
    return ending(lambda: answer(words, COMMANDS if commands is None else commands))


def answer(words: list[str], commands: Mapping[str, Command]) -> int:
    name, *rest = words or HELP
    if name in ANSWERS:
        print(ANSWERS[name](commands), flush=True)
    else:
        check_command(name, commands)
        run(name, commands[name], rest)
    return OK if words else BAD_INPUT


def run(name: str, command: Command, words: Sequence[str]) -> None:
    """The job, imported only now that everything about the command line is known to be right."""
    if not set(HELP).isdisjoint(words):
        print(parser_of(name, command, explain=True).format_help(), end="", flush=True)
        return
    options = parse(name, command, words)
    json_file, silent = options.pop("json", None), options.pop("quiet")
    if json_file:
        check_writable(json_file)
    with no_progress() if silent else nullcontext():
        result = call(command, options)
    if json_file:
        write_json(json_file, result.as_json())
    if not silent:
        show(result)


def show(result: Any) -> None:
    from rich.console import Console

    result.show(Console(width=None if sys.stdout.isatty() else 120))  # 80 columns would cut tables in a file
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
