"""`irtool convert`: conversion between archives, text and weights. The extension of the output chooses the format."""
from __future__ import annotations

from irtool.cli.command import Arguments, argument, command
from irtool.cli.options import input_option, state_option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.cli.console import Console


@command("convert", epilog="""
  irtool convert model.pt model.ir
  irtool convert checkpoint.pt weights.safetensors
  irtool convert printed.ir model.pt --load-state state.pt
""")
@argument("source", metavar="IN", help="an archive (or MODEL.pt:METHOD), IR text, or weights, recognised by its bytes (-: standard input)")
@argument("output", metavar="OUT",
          help="NAME.pt: an archive, or a state dict of weights alone; "
               ".ir: text, with weights beside it; .npz, .safetensors: weights alone; .py: source")
@state_option
@input_option
def convert(arguments: Arguments, console: Console) -> int:
    """Read a file, and write it in the form of the output's extension."""
    from irtool.cli.conversion import convert as converted

    converted(arguments, console)
    return 0
