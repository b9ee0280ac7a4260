"""`archwright completion bash|zsh|fish`: a script that completes commands, options and the values one may choose.

It is made of the same tables as the help, so it knows every option; it is written once and runs no Python.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from archwright.cli.parser import COMPLETION, FLAGS
from archwright.commands import Command
from archwright.configs.options import config_options, nearest, option_docs, option_groups
from archwright.errors import BadInput

SWITCHES = {"--help": "Explain the options.", "--help-all": "Explain all of them.", "--quiet": "Show nothing."}
"""Options of every command without a value."""


@dataclass(frozen=True)
class Completed:
    """An option as a shell completes it."""

    flag: str
    doc: str
    takes_value: bool = True
    choices: tuple[str, ...] = ()
    """What the value may be; none: a file or anything."""


def completion_script(words: Sequence[str], commands: Mapping[str, Command]) -> str:
    """The script for the shell that the words name."""
    if len(words) != 1 or words[0] not in SHELLS:
        got = f"got {' '.join(words)!r}" if words else "got none"
        hint = nearest(words[0], SHELLS) if words else ""
        raise BadInput(f"archwright {COMPLETION} needs one of {', '.join(SHELLS)}, {got}{hint or '.'}")
    return SHELLS[words[0]](commands, {name: completion_options(command) for name, command in commands.items()})


def completion_options(command: Command) -> list[Completed]:
    """Every option of the command that is not a word without dashes, and those of all commands."""
    docs = {name: doc for group in option_groups(command.config).values() for name, doc in option_docs(group).items()}
    found = []
    for option in config_options(command.config).values():
        if option.name in command.positional:
            continue
        doc, is_switch = re.split(r"[;.:] ", docs.get(option.name, ""))[0].rstrip("."), option.type is bool
        found.append(Completed(option.flag, doc, not is_switch, tuple(option.choices())))
        if is_switch:
            found.append(Completed(f"--no-{option.flag[2:]}", f"Not: {doc}", takes_value=False))
    found += [Completed(flag, doc.split(";")[0].rstrip(".")) for flag, doc in FLAGS.values()]
    return found + [Completed(flag, doc.rstrip("."), takes_value=False) for flag, doc in SWITCHES.items()]


Tables = Mapping[str, Sequence[Completed]]


def bash_script(commands: Mapping[str, Command], options: Tables) -> str:
    """Where nothing of ours fits, bash completes files itself."""
    return f"""# archwright, completed by bash: eval "$(archwright {COMPLETION} bash)"
_archwright() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{" ".join((*commands, COMPLETION))}" -- "$cur"))
        return
    fi
    case "${{COMP_WORDS[1]}} $prev" in
        "{COMPLETION} {COMPLETION}") words="{" ".join(SHELLS)}" ;;
{value_cases(options, 'words="{}"')}
    esac
    if [ -z "$words" ] && [[ "$cur" == -* ]]; then
        case "${{COMP_WORDS[1]}}" in
{flag_cases(options, 'words="{}"')}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o bashdefault -o default -F _archwright archwright
"""


def zsh_script(commands: Mapping[str, Command], options: Tables) -> str:
    """For `eval`, also where nothing has begun the completions of zsh, and as a file _archwright in its fpath."""
    described = "\n".join(f"        {quoted(f'{name}:{command.summary}')}" for name, command in commands.items())
    return f"""#compdef archwright
# archwright, completed by zsh: eval "$(archwright {COMPLETION} zsh)"
_archwright() {{
    local previous="${{words[CURRENT-1]}}"
    local -a commands found
    commands=(
{described}
        '{COMPLETION}:a script that completes command lines in your shell'
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    case "${{words[2]}} $previous" in
        "{COMPLETION} {COMPLETION}") found=({" ".join(SHELLS)}) ;;
{value_cases(options, "found=({})")}
    esac
    if (( ! ${{#found}} )) && [[ "$PREFIX" == -* ]]; then
        case "${{words[2]}}" in
{flag_cases(options, "found=({})")}
        esac
    fi
    if (( ${{#found}} )); then compadd -a found; else _files; fi
}}
if [[ "${{funcstack[1]}}" == _archwright ]]; then  # a file that zsh has just loaded in order to complete
    _archwright "$@"
else
    (( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit }}
    compdef _archwright archwright
fi
"""


def fish_script(commands: Mapping[str, Command], options: Tables) -> str:
    lines = [f"# archwright, completed by fish: archwright {COMPLETION} fish | source"]
    first = "complete -c archwright -f -n __fish_use_subcommand -a"
    lines += [f"{first} {name} -d {quoted(command.summary)}" for name, command in commands.items()]
    lines.append(f"{first} {COMPLETION} -d 'a script that completes command lines in your shell'")
    seen = "complete -c archwright -n '__fish_seen_subcommand_from {}'"
    lines.append(f"{seen.format(COMPLETION)} -f -a '{' '.join(SHELLS)}'")
    for name, table in options.items():
        for option in table:
            value = f" -x -a {quoted(' '.join(option.choices))}" if option.choices else " -r" * option.takes_value
            lines.append(f"{seen.format(name)} -l {option.flag[2:]}{value} -d {quoted(option.doc)}")
    return "\n".join(lines) + "\n"


def value_cases(options: Tables, assign: str) -> str:
    """What follows an option: its choices, in the words of `case`."""
    return "\n".join(
        f'        "{name} {option.flag}") {assign.format(" ".join(option.choices))} ;;'
        for name, table in options.items()
        for option in table
        if option.choices
    )


def flag_cases(options: Tables, assign: str) -> str:
    """All options of a command, in the words of `case`."""
    return "\n".join(
        f"            {name}) {assign.format(' '.join(option.flag for option in table))} ;;"
        for name, table in options.items()
    )


def quoted(text: str) -> str:
    """In single quotes, which end for a quote inside."""
    return "'" + text.replace("'", "'\\''") + "'"


SHELLS: dict[str, Callable[[Mapping[str, Command], Tables], str]] = {
    "bash": bash_script,
    "zsh": zsh_script,
    "fish": fish_script,
}
