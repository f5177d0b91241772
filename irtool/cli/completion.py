"""`irtool completion SHELL`: a completion script with every word in it, so that a TAB starts no Python."""
from __future__ import annotations

from irtool.cli.command import Arguments, Command, Option, Positional, UsageError
from irtool.ir.errors import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console

SHELLS = ("bash", "zsh", "fish")


def run(arguments: Arguments, console: Console) -> int:
    """Print the script of one shell."""
    shell = arguments.shell
    if shell not in SHELLS:
        raise UsageError(f"expected {', '.join(SHELLS)}, not '{shell}'{did_you_mean(shell, SHELLS)}")
    commands = {name: command.options for name, command in all_commands().items()}
    console.out({"bash": bash, "zsh": zsh, "fish": fish}[shell](commands, pass_names()))
    return 0


def all_commands() -> dict[str, Command]:
    """Every subcommand by name."""
    from irtool.cli.main import COMMANDS, load

    return {name: load(name) for name in COMMANDS}


def pass_names() -> list[str]:
    """What may stand in a pipeline."""
    from irtool.passes import PASSES
    from irtool.pipelines import PRESETS

    return [*(entry.name for entry in PASSES), *PRESETS]


def flags(options: tuple[Option, ...]) -> list[str]:
    """The long flags of a subcommand; those that want a value end in `=`."""
    found = []
    for option in options:
        for flag in option.flags:
            if flag.startswith("--"):
                found.append(flag + ("=" if option.value and option.bare is None else ""))
                if option.negatable:
                    found.append("--no-" + flag[2:])
    return found


def bash(commands: dict[str, tuple[Option, ...]], passes: list[str]) -> str:
    """For ~/.bashrc: eval "$(irtool completion bash)"."""
    cases = "\n".join(f'    {name}) words="{" ".join(flags(options))}" ;;' for name, options in commands.items())
    choices = "\n".join(f'    {flag}) words="{" ".join(values)}" ;;' for flag, values in choices_of(commands).items())
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


def zsh(commands: dict[str, tuple[Option, ...]], passes: list[str]) -> str:
    """For ~/.zshrc: eval "$(irtool completion zsh)"."""
    names = " ".join(f"'{name}:{text}'" for name, text in summaries().items())
    cases = []
    for name, options in commands.items():
        specs = []
        for option in options:
            for flag in option.flags:
                if flag == "--passes":
                    specs.append("'*--passes=[" + quoted(option.help) + "]:pipeline:_sequence compadd - $_irtool_passes'")
                elif flag.startswith("--"):
                    action = f"({' '.join(option.choices)})" if option.choices else "_files"
                    value = f":{option.value}:{action}" if option.value else ""
                    mark = ("=-" if option.bare is not None else "=") if option.value else ""
                    specs.append(f"'{'*' if option.many else ''}{flag}{mark}[{quoted(option.help)}]{value}'")
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


def fish(commands: dict[str, tuple[Option, ...]], passes: list[str]) -> str:
    """For ~/.config/fish/completions/irtool.fish."""
    out = ["# irtool, completion for fish: irtool completion fish > ~/.config/fish/completions/irtool.fish"]
    out += [f"complete -c irtool -n __fish_use_subcommand -f -a {name} -d '{quoted(text)}'" for name, text in summaries().items()]
    for name, options in commands.items():
        for option in options:
            for flag in option.flags:
                if not flag.startswith("--"):
                    continue
                words = " -r" if option.value and option.bare is None else ""
                if flag == "--passes":
                    words = f" -x -a '(__fish_append , {' '.join(passes)})'"
                elif option.choices:
                    words = f" -x -a '{' '.join(option.choices)}'"
                out.append(f"complete -c irtool -n '__fish_seen_subcommand_from {name}' -l {flag[2:]}{words} -d '{quoted(option.help)}'")
    return "\n".join(out) + "\n"


def summaries() -> dict[str, str]:
    """One line per subcommand."""
    from irtool.cli.main import COMMANDS

    return {name: summary for name, (_, _, summary) in COMMANDS.items()}


def choices_of(commands: dict[str, tuple[Option, ...]]) -> dict[str, tuple[str, ...]]:
    """The values of every flag that has a fixed set of them."""
    return {flag: option.choices for options in commands.values() for option in options for flag in option.flags
            if option.choices and flag.startswith("--")}


def quoted(text: str) -> str:
    """Help text inside single quotes of any of the shells (no quote, bracket or colon)."""
    return "".join(" " if char in "'[]:`$\\" else char for char in text)


COMMAND = Command(run, usage="|".join(SHELLS), positionals=[Positional("shell", help="bash, zsh or fish")])
