"""`irtool completion SHELL`: a completion script that contains all words, so that completing starts no Python."""
from __future__ import annotations

from irtool.cli.command import Arguments, argument, command
from irtool.cli.exit_errors import UsageError
from irtool.ir.errors import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from irtool.cli.console import Console

    Info = dict[str, Any]
    """The result of click's `to_info_dict` for a subcommand or option."""

SHELLS = ("bash", "zsh", "fish")


@command("completion")
@argument("shell", metavar="SHELL", help="bash, zsh or fish")
def completion(arguments: Arguments, console: Console) -> int:
    """Print the script of one shell."""
    shell = arguments.shell
    if shell not in SHELLS:
        raise UsageError(f"expected {', '.join(SHELLS)}, not '{shell}'{did_you_mean(shell, SHELLS)}", code="E0806")
    console.out({"bash": bash, "zsh": zsh, "fish": fish}[shell](described(), pass_names()))
    return 0


def described() -> dict[str, Info]:
    """Name of a subcommand -> its `to_info_dict`."""
    from irtool.cli.group import cli

    commands: dict[str, Info] = cli.to_info_dict(cli.context_class(cli, info_name="irtool", **cli.context_settings))["commands"]
    return commands


def options_of(info: Info) -> list[Info]:
    """The options of a subcommand."""
    return [param for param in info["params"] if param["param_type_name"] == "option"]


def takes_word(option: Info) -> bool:
    """Does an option take the next word as its value?"""
    return not option["is_flag"] and option["bare"] is None


def choices_of(option: Info) -> list[str]:
    """The values of an option that has a fixed set of them."""
    return list(option["type"].get("choices", ()))


def long_flags(option: Info) -> list[str]:
    """`--verify-each` and `--no-verify-each`."""
    return [flag for flag in (*option["opts"], *option["secondary_opts"]) if flag.startswith("--")]


def pass_names() -> list[str]:
    """The names of passes and presets."""
    from irtool.passes import PASSES
    from irtool.pipelines import PRESETS

    return [*(entry.name for entry in PASSES), *PRESETS]


def bash(commands: dict[str, Info], passes: list[str]) -> str:
    """For ~/.bashrc: eval "$(irtool completion bash)"."""
    every = {name: options_of(info) for name, info in commands.items()}
    flags = {name: [f"{flag}{'=' * takes_word(option)}" for option in options for flag in long_flags(option)]
             for name, options in every.items()}
    cases = "\n".join(f'    {name}) words="{" ".join(words)}" ;;' for name, words in flags.items())
    values = {flag: choices_of(option) for options in every.values() for option in options for flag in long_flags(option)}
    choices = "\n".join(f'    {flag}) words="{" ".join(words)}" ;;' for flag, words in values.items() if words)
    return f"""# irtool, completion for bash: eval "$(irtool completion bash)"
_irtool() {{
  local line="${{COMP_LINE:0:COMP_POINT}}"
  local current="${{line##*[[:space:]]}}" words="" head="" tail
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W "{' '.join(commands)} --version --help" -- "$current"))
    return
  fi
  if [[ $current == --*=* ]]; then
    case "${{current%%=*}}" in
    --passes) words="{' '.join(passes)}" ;;
{choices}
    *) compopt -o default; return ;;
    esac
    tail="${{current#*=}}"; tail="${{tail#[\\'\\"]}}"
    [[ $current == --passes=*,* ]] && head="${{tail%,*}},"
    COMPREPLY=($(compgen -P "$head" -W "$words" -- "${{tail##*,}}"))
    compopt -o nospace
    return
  fi
  if [[ $current == -* ]]; then
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    [[ ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace
    return
  fi
  compopt -o default
}}
complete -F _irtool irtool
"""


def zsh(commands: dict[str, Info], passes: list[str]) -> str:
    """For ~/.zshrc: eval "$(irtool completion zsh)"."""
    names = " ".join(f"'{name}:{info['help']}'" for name, info in commands.items())
    cases = []
    for name, info in commands.items():
        specs = []
        for option in options_of(info):
            for flag in long_flags(option):
                if flag == "--passes":
                    specs.append("'*--passes=[" + quoted(option["help"]) + "]:pipeline:_sequence compadd - $_irtool_passes'")
                    continue
                action = f"({' '.join(choices_of(option))})" if choices_of(option) else "_files"
                value = "" if option["is_flag"] else f":{option['metavar']}:{action}"
                mark = "" if option["is_flag"] else "=" if takes_word(option) else "=-"
                specs.append(f"'{'*' if option['multiple'] else ''}{flag}{mark}[{quoted(option['help'])}]{value}'")
        cases.append(f"    {name}) _arguments {' '.join(specs)} '*:file:_files' ;;")
    body = "\n".join(cases)
    return f"""#compdef irtool
# irtool, completion for zsh: eval "$(irtool completion zsh)"
typeset -ga _irtool_passes=({' '.join(passes)})
_irtool() {{
  if (( CURRENT == 2 )); then
    local -a names=({names})
    _describe command names
    return
  fi
  local name=$words[2]
  shift words; (( CURRENT-- ))
  case $name in
{body}
  esac
}}
compdef _irtool irtool
"""


def fish(commands: dict[str, Info], passes: list[str]) -> str:
    """For ~/.config/fish/completions/irtool.fish."""
    out = ["# irtool, completion for fish: irtool completion fish > ~/.config/fish/completions/irtool.fish"]
    out += [f"complete -c irtool -n __fish_use_subcommand -f -a {name} -d '{quoted(info['help'])}'" for name, info in commands.items()]
    for name, info in commands.items():
        for option in options_of(info):
            for flag in long_flags(option):
                words = " -r" if takes_word(option) else ""
                if flag == "--passes":
                    words = f" -x -a '(__fish_append , {' '.join(passes)})'"
                elif choices_of(option):
                    words = f" -x -a '{' '.join(choices_of(option))}'"
                out.append(f"complete -c irtool -n '__fish_seen_subcommand_from {name}' -l {flag[2:]}{words} -d '{quoted(option['help'])}'")
    return "\n".join(out) + "\n"


def quoted(text: str) -> str:
    """A help text for single quotes of all three shells (no quote, bracket or colon)."""
    return "".join(" " if char in "'[]:`$\\" else char for char in text)
