"""Options and arguments that several subcommands share, as decorators."""
from irtool.cli import converters
from irtool.cli.command import DIAGNOSTICS, Choice, Converted, argument, option, together

INPUTS, EXECUTION, OUTPUT = "Inputs", "Execution", "Output"

# -- every subcommand
common_options = together(
    option("--color", metavar="WHEN", type=Choice("auto", "always", "never"), default="auto", group=DIAGNOSTICS, help="colour of messages"),
    option("--diagnostics-format", metavar="FORM", type=Choice("text", "json"), default="text", group=DIAGNOSTICS,
           help="errors as text or as one JSON object per line"),
    option("--max-errors", metavar="N", type=Converted(converters.at_least(1)), default=20, group=DIAGNOSTICS,
           help="report at most this many errors (20)"),
    option("--load", metavar="FILE.py", multiple=True, group=INPUTS,
           help="execute a Python file first, which defines passes and operators; repeat for several"),
    option("--debug", is_flag=True, group=DIAGNOSTICS, help="show the Python traceback of an error"),
)

# -- files and results
files_argument = argument("files", nargs=-1, metavar="FILE",
                          help="IR text (-: standard input, the default); several, folders and patterns go to -o DIR")
text_argument = argument("file", metavar="FILE", default="-", help="IR text (-: standard input, the default)")
cases_argument = argument("file", metavar="GRAPH.ir", default="-",
                          help="IR text (-: standard input, the default), or a folder of cases: NAME.ir, NAME.npz, NAME.expected.npz")
graph_argument = argument("file", metavar="GRAPH.ir", default="-", help="IR text (-: standard input, the default)")
output_option = option("-o", "--output", metavar="FILE", default="-", group=OUTPUT, help="the file for the result (-: standard output)")
syntax_option = option("--syntax", metavar="DIALECT", type=Converted(converters.dialect_name), group=OUTPUT,
                       help="print in this dialect (G, F1, D, C2, C1, ... or 2.13, 2020-04, 2019-02, 2018-06)")
types_option = option("--types", metavar="FORM", type=Choice("short", "full", "none"), default="full", group=OUTPUT,
                      help="types in printed IR: f32[4,8] (short), as irtool can parse them (full, the default), or none")

# -- inputs of graphs
inputs_argument = argument("inputs", metavar="INPUTS.npz", required=False,
                           help="arrays by input name, or input0, input1, ...; or 0, 1, ...; or arr_0, arr_1, ...")
input_option = option("-i", "--input", metavar="NAME=VALUE", multiple=True, group=INPUTS,
                      help="a value: x=2x3xf32=0, n=3, l=[1,2], x=@file.npy; replaces one of the file's; repeat for several")
seed_option = option("--seed", metavar="N", type=Converted(converters.seed), default=0, group=INPUTS,
                     help="seed of random operators and rand/randn literals (0)")
state_option = option("--load-state", metavar="FILE", group=INPUTS,
                      help="weights for the module %self of a text, or in place of an archive's: .npz, .safetensors or .pt")
input_options = together(
    input_option,
    option("--cast", is_flag=True, group=INPUTS, help="convert inputs to the declared dtypes"),
    option("--constants", metavar="FILE.npz", group=INPUTS, help="arrays of constants that the text shows as <Tensor>"),
    state_option,
    option("--graph", metavar="NAME", group=INPUTS, help="read only this graph of the file, without its pair"),
    seed_option,
)
wrt_option = option("--wrt", metavar="0,2", type=Converted(converters.positions_or_names), group=INPUTS,
                    help="positions or names of inputs to differentiate for (default: all floating-point tensors)")
cotangents_option = option("--cotangents", metavar="FILE.npz", group=INPUTS,
                           help="cotangents of the outputs, vjp0, vjp1, ...; or among the inputs")
pair_options = together(
    option("--pair", metavar="NAME", group=INPUTS, help="read only this gradient pair of the file, by the name of its forward graph"),
    cotangents_option,
)

# -- how graphs are run
plan_options = together(
    option("--requires-grad", metavar="X,Y", type=Converted(converters.names), group=EXECUTION,
           help="inputs that need gradients: names, all or none (default: by their types)"),
    option("--no-grad", is_flag=True, group=EXECUTION, help="compute no gradients, whatever types and other options say"),
    option("--autodiff-threshold", metavar="N", type=Converted(converters.count), group=EXECUTION,
           help="differentiate by groups of at least this many operators (2)"),
    option("--inline-threshold", metavar="N", type=Converted(converters.count), group=EXECUTION,
           help="differentiate by groups, and inline those with fewer operators (5)"),
    option("--no-autodiff-inlining", is_flag=True, group=EXECUTION, help="set both thresholds to 1"),
    option("--no-optimize", is_flag=True, group=EXECUTION, help="run only the required passes"),
    option("--profiling", is_flag=True, group=EXECUTION, help="run once to record shapes, then by a plan for these shapes behind a guard"),
    option("--backend", metavar="NAME", type=Choice("numpy", "cupy"), default="numpy", group=EXECUTION, help="the array library"),
    option("--native", metavar="WHICH", type=Choice("auto", "all", "none"), default="auto", group=EXECUTION,
           help="run groups of pointwise operators as loops in C: auto (large ones), all or none"),
    option("--threads", metavar="N", type=Converted(converters.count), default=1, group=EXECUTION,
           help="threads that share large groups and run heavy nodes at the same time (1)"),
)
run_options = together(
    plan_options,
    option("--backward", is_flag=True, group=EXECUTION,
           help="compute the gradients of inputs that need one (for a pair: fail if there are no cotangents)"),
    option("--create-graph", metavar="N", type=Converted(converters.count), group=EXECUTION,
           help="differentiate N times; gradients of rounds before the last are summed (cotangent 1)"),
    option("--interpret", is_flag=True, group=EXECUTION, help="run by the reference interpreter instead of a plan"),
    option("--repeat", metavar="K", type=Converted(converters.count), default=1, group=EXECUTION, help="run K times (1)"),
    option("--stats", is_flag=True, group=EXECUTION, help="print the executor's counters, as JSON, to standard error"),
    option("--time", is_flag=True, group=EXECUTION, help="print the time of the runs to standard error"),
)

# -- outputs
result_options = together(
    option("-o", "--output", metavar="FILE.npz", default="-", group=OUTPUT, help="store output0, ..., grad0, ... instead of showing them"),
    option("--json", is_flag=True, group=OUTPUT, help="print JSON"),
    option("--expect", metavar="FILE.npz", group=OUTPUT, help="compare with these results; exit with 1 if they differ"),
    option("--rtol", metavar="X", type=Converted(converters.tolerance), group=OUTPUT,
           help="relative tolerance (default: by dtype; 0 for integers)"),
    option("--atol", metavar="X", type=Converted(converters.tolerance), group=OUTPUT, help="absolute tolerance"),
)
traced_options = together(
    types_option,
    option("--save-constants", metavar="FILE.npz", group=OUTPUT, help="the file for arrays that are constants of the graph"),
    option("-o", "--output", metavar="FILE", default="-", group=OUTPUT, help="the file for the graph (-: standard output)"),
)
