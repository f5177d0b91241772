"""Options and arguments that several subcommands have, as decorators."""
from __future__ import annotations

from irtool.cli import converters
from irtool.cli.command import DIAGNOSTICS, Choice, Converted, argument, option, together

INPUTS, EXECUTION, OUTPUT = "Inputs", "Execution", "Output"

# -- every subcommand
common_options = together(
    option("--color", metavar="WHEN", type=Choice("auto", "always", "never"), default="auto", group=DIAGNOSTICS, help="colour of messages"),
    option("--diagnostics-format", metavar="FORM", type=Choice("text", "json"), default="text", group=DIAGNOSTICS,
           help="errors as text or as one JSON object per line"),
    option("--max-errors", metavar="N", type=Converted(converters.at_least(1)), default=20, group=DIAGNOSTICS,
           help="stop reporting after this many (20)"),
    option("--load", metavar="FILE.py", multiple=True, group=INPUTS,
           help="execute a Python file first: its passes and operators are there then; repeat"),
    option("--debug", is_flag=True, group=DIAGNOSTICS, help="show the Python traceback of an error"),
)

# -- files and results
text_argument = argument("file", metavar="FILE", default="-", help="IR text (-: standard input, the default)")
graph_argument = argument("file", metavar="GRAPH.ir", default="-", help="IR text (-: standard input, the default)")
output_option = option("-o", "--output", metavar="FILE", default="-", group=OUTPUT, help="where the result goes (-: standard output)")
syntax_option = option("--syntax", metavar="DIALECT", type=Converted(converters.dialect_name), group=OUTPUT,
                       help="print in this dialect (G, F1, D, C2, C1, ... or 2.13, 2020-04, 2019-02, 2018-06)")

# -- what graphs are run on
inputs_argument = argument("inputs", metavar="INPUTS.npz", required=False,
                           help="arrays by input name, or input0, input1, ...; or 0, 1, ...; or arr_0, arr_1, ...")
input_option = option("-i", "--input", metavar="NAME=VALUE", multiple=True, group=INPUTS,
                      help="a value: x=2x3xf32=0, n=3, l=[1,2], x=@file.npy; replaces or adds; repeat")
seed_option = option("--seed", metavar="N", type=Converted(converters.seed), default=0, group=INPUTS,
                     help="seed of random operators and rand/randn literals (0)")
state_option = option("--load-state", metavar="FILE", group=INPUTS,
                      help="weights of the module %self, or others for an archive: .npz, .safetensors or .pt")
input_options = together(
    input_option,
    option("--cast", is_flag=True, group=INPUTS, help="convert inputs to the declared dtypes"),
    option("--constants", metavar="FILE.npz", group=INPUTS, help="arrays of the constants that the text has as <Tensor>"),
    state_option,
    option("--graph", metavar="NAME", group=INPUTS, help="take this graph of the file, as it stands"),
    seed_option,
)
wrt_option = option("--wrt", metavar="0,2", type=Converted(converters.positions_or_names), group=INPUTS,
                    help="positions or names of the inputs that are differentiated (default: all floating-point tensors)")
pair_options = together(
    option("--pair", metavar="NAME", group=INPUTS, help="take this gradient pair of the file, by the name of its forward graph"),
    option("--cotangents", metavar="FILE.npz", group=INPUTS, help="gradients of the outputs, vjp0, vjp1, ...; they may also be inputs"),
)

# -- how graphs are run
plan_options = together(
    option("--requires-grad", metavar="X,Y", type=Converted(converters.names), group=EXECUTION,
           help="inputs that need gradients: names, all or none (default: those whose types say so)"),
    option("--no-grad", is_flag=True, group=EXECUTION, help="no input needs a gradient, whatever is said elsewhere"),
    option("--autodiff-threshold", metavar="N", type=Converted(converters.count), group=EXECUTION,
           help="operators in a differentiated group, at least (2); differentiates by groups"),
    option("--inline-threshold", metavar="N", type=Converted(converters.count), group=EXECUTION,
           help="groups with fewer operators are opened again (5); differentiates by groups"),
    option("--no-autodiff-inlining", is_flag=True, group=EXECUTION, help="both thresholds are 1"),
    option("--no-optimize", is_flag=True, group=EXECUTION, help="the graph as it stands, with the required passes only"),
    option("--profiling", is_flag=True, group=EXECUTION, help="run once to see shapes, then by a plan for these, guarded"),
    option("--backend", metavar="NAME", type=Choice("numpy", "cupy"), default="numpy", group=EXECUTION, help="numpy or cupy"),
    option("--native", metavar="WHICH", type=Choice("auto", "all", "none"), default="auto", group=EXECUTION,
           help="groups of pointwise operators as loops in C: auto (large ones), all or none"),
    option("--threads", metavar="N", type=Converted(converters.count), default=1, group=EXECUTION,
           help="threads that share large groups, and run heavy nodes beside each other (1)"),
)
run_options = together(
    plan_options,
    option("--backward", is_flag=True, group=EXECUTION,
           help="show the gradients of the inputs that need one (of a pair: no gradients is an error)"),
    option("--create-graph", metavar="N", type=Converted(converters.count), group=EXECUTION,
           help="gradients of gradients, N times; those of the first N-1 times take part with ones"),
    option("--interpret", is_flag=True, group=EXECUTION, help="the reference interpreter instead of a plan"),
    option("--repeat", metavar="K", type=Converted(converters.count), default=1, group=EXECUTION, help="run so often (1)"),
    option("--stats", is_flag=True, group=EXECUTION, help="the executor's counters, as JSON on standard error"),
    option("--time", is_flag=True, group=EXECUTION, help="how long it took, on standard error"),
)

# -- what comes out
result_options = together(
    option("-o", "--output", metavar="FILE.npz", default="-", group=OUTPUT, help="store output0, ..., grad0, ... instead of showing them"),
    option("--json", is_flag=True, group=OUTPUT, help="as JSON"),
    option("--expect", metavar="FILE.npz", group=OUTPUT, help="compare with these members; exit 1 where they differ"),
    option("--rtol", metavar="X", type=Converted(converters.tolerance), group=OUTPUT,
           help="relative tolerance (default: by dtype, integers exactly)"),
    option("--atol", metavar="X", type=Converted(converters.tolerance), group=OUTPUT, help="absolute tolerance"),
)
traced_options = together(
    option("--save-constants", metavar="FILE.npz", group=OUTPUT, help="where arrays that are constants of the graph go"),
    option("-o", "--output", metavar="FILE", default="-", group=OUTPUT, help="where the graph goes (-: standard output)"),
)
