"""`archwright COMMAND ...`: parse, run the command, show its result."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace

from archwright.cli.exit_codes import BAD_INPUT, OK, exit_code
from archwright.cli.interrupts import ending_at_once, interrupt_on_sigterm
from archwright.cli.output import STDOUT, check_writable, write_json, write_text
from archwright.cli.parser import COMPLETION, Arguments, check_command, help_page, load_config, overview, parse
from archwright.commands import COMMANDS, Command, check, load, run_command
from archwright.configs.yaml_file import config_text
from archwright.errors import BadInput
from archwright.logs import logger, write_logs
from archwright.parallel.launcher import end_with_launcher, is_first, launched_processes
from archwright.parallel.parent import end_with_parent
from archwright.progress import quiet as no_progress
from archwright.version import __version__

HELP, HELP_ALL = ("-h", "--help"), "--help-all"


def main(argv: Sequence[str] | None = None, commands: Mapping[str, Command] | None = None) -> int:
    """The exit code: 0 done, 1 failed, 2 bad input, 130 interrupted."""
    words = sys.argv[1:] if argv is None else list(argv)
    with interrupt_on_sigterm():
        end_with_parent()  # before libraries are loaded, which takes seconds
        end_with_launcher()
        return exit_code(lambda: answer(words, COMMANDS if commands is None else commands))


def answer(words: list[str], commands: Mapping[str, Command]) -> int:
    name, *rest = words or HELP
    if name in HELP:
        print(overview(commands), flush=True)
        return OK if words else BAD_INPUT
    if name == "--version":
        print(f"archwright {__version__}", flush=True)
        return OK
    if name == COMPLETION:
        from archwright.cli.completion import completion_script

        print(completion_script(rest, commands), end="", flush=True)
        return OK
    check_command(name, (*commands, COMPLETION))
    if HELP_ALL in rest or not set(HELP).isdisjoint(rest):
        print(help_page(name, commands[name], whole=HELP_ALL in rest), end="", flush=True)
    else:
        run_and_show(name, commands[name], parse(name, commands[name], rest))
    return OK


def run_and_show(name: str, command: Command, arguments: Arguments) -> None:
    """The command's module is imported only now that everything about the command line is known to be right."""
    config = load_config(name, command, arguments)
    if launched_processes() > 1 and not command.processes:
        raise BadInput(
            f"`archwright {name}` is the work of one process, got {launched_processes()} of them; leave out torchrun."
        )
    if not is_first():  # it takes part in the work, and leaves writing and speaking to the first process
        arguments = replace(arguments, json=None, save_config=None, log_file=None, quiet=True, verbose=False)
    for flag, path in {
        "--json": arguments.json,
        "--save-config": arguments.save_config,
        "--log-file": arguments.log_file,
    }.items():
        if path:
            check_writable(path, flag)
    if arguments.save_config:
        text = config_text(config, title=f"archwright {name} --options FILE")
        write_text(arguments.save_config, text, mode=0o600)  # the address of a store may hold a password
    with (
        no_progress() if arguments.quiet else nullcontext(),
        write_logs(verbose=arguments.verbose, quiet=arguments.quiet, file=arguments.log_file),
    ):
        shown = {key: value for key, value in arguments.values.items() if key != "store"}  # it may hold a password
        logger.info("archwright %s %s %s", __version__, name, shown)
        with ending_at_once():
            check(command, config)
            function = load(command.target)
        result = run_command(function, config)
    if arguments.json:
        write_json(arguments.json, result.as_json())
    if not arguments.quiet and arguments.json != STDOUT:
        from rich.console import Console

        width = None if sys.stdout.isatty() else 120  # 80 columns would cut tables in a file
        result.show(Console(width=width, markup=False, emoji=False))  # names of folders and labels are no markup
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
