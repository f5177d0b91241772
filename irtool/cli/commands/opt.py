"""`irtool opt`: parse, verify, run passes, print."""
from __future__ import annotations

from irtool.cli.command import Arguments, Choice, Converted, Option, command, option
from irtool.cli.console import write_whole
from irtool.cli.constants_file import keep, take
from irtool.cli.converters import at_least
from irtool.cli.exit_errors import InternalError, UsageError
from irtool.cli.inputs import load_weights, say_what_is_rounded, state_loaded, verify
from irtool.cli.interrupt import raise_interrupt
from irtool.cli.many import each_file, is_asked, json_option, many_options
from irtool.cli.opener import ArchiveSource, is_archive_name
from irtool.cli.opt import HEADER
from irtool.cli.options import files_argument, output_option, state_option, syntax_option, types_option
from irtool.cli.show.progress import Progress
from irtool.cli.validating import MADE, VALIDATION, gradients_option, tolerance_options
from irtool.ir.errors import Error, VerifyError
from irtool.ir.graph import counted
from irtool.ir.module import Module
from irtool.ir.source import Diagnostic, SourceFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from irtool.archives.rewriting import Rewriting
    from irtool.cli.console import Console
    from irtool.cli.show.reports import Bisection, Reports
    from irtool.passmanager import PassManager, PassRecord
    from irtool.pipelines import Step

SPLIT = "# -----"
"""The line that separates independent inputs of one file."""


PASSES, PRINTING, DEBUGGING = "Passes", "Printing", "Debugging"


@command("opt", epilog="""
  irtool opt --passes='lower-tuples{all},cse,dce' graph.ir
  irtool passes        lists the passes, irtool passes NAME explains one
""")
@files_argument
@option("-p", "--passes", metavar="PIPELINE", multiple=True, group=PASSES,
        help="passes in order, or a preset (O1, O2, training, inference); @FILE reads a pipeline from a file; repeat to add")
@option("--graph", metavar="NAME", group=PASSES, help="read only this graph")
@option("--split-input-file", is_flag=True, group=PASSES, help=f"the file has several independent inputs, separated by lines '{SPLIT}'")
@option("-q", "--quiet", is_flag=True, group=PRINTING, help="print no summary line per pass")
@option("--print-before", metavar="PASS", multiple=True, group=PRINTING, help="print the IR before each run of this pass")
@option("--print-after", metavar="PASS", multiple=True, group=PRINTING, help="print the IR after each run of this pass")
@option("--print-before-all", is_flag=True, group=PRINTING, help="print the IR before each pass")
@option("--print-after-all", is_flag=True, group=PRINTING, help="print the IR after each pass")
@option("--print-changed", metavar="FORM", type=Choice("diff", "full", "quiet"), bare="diff", group=PRINTING,
        help="print what each pass changed; quiet: a diff, and nothing for passes without effect")
@option("--print-limit", metavar="N", type=Converted(at_least(0)), default=1000, group=PRINTING,
        help="shorten constants with more characters than this in IR printed by options, not in the result (1000; 0: none)")
@option("--dump-dir", metavar="DIR", group=PRINTING, help="write the IR after each pass, and index.json, to this folder")
@option("--time-passes", metavar="FORM", type=Choice("text", "json", "chrome"), bare="text", group=PRINTING,
        help="print time and size per pass; chrome: for chrome://tracing")
@option("--stats", metavar="FORM", type=Choice("text", "json"), bare="text", group=PRINTING, help="print what each pass counted")
@option("--remarks", metavar="KIND", type=Choice("missed"), group=PRINTING,
        help="missed: say why nodes were not fused, merged, folded, unrolled or differentiated")
@option("--print-alias", is_flag=True, group=PRINTING, help="print which values of the result may share memory, and what writes into it")
@option("--dump-pipeline", is_flag=True, group=PRINTING, help="print the pipeline with the value of every option")
@option("--verify-each/--no-verify-each", default=True, group=DEBUGGING, help="verify the input, and the graphs after each pass")
@option("--verify-roundtrip", is_flag=True, group=DEBUGGING, help="check that the output, parsed and printed again, is the same text")
@option("--verify-diagnostics", is_flag=True, group=DEBUGGING,
        help="check that the errors are those in '# expected-error@+1 {{text}}' comments")
@option("--validate", metavar="INPUTS.npz", bare=MADE, group=VALIDATION,
        help="run the graphs before and after each pass; stop where results change")
@gradients_option
@tolerance_options
@option("--opt-bisect-limit", metavar="N", type=Converted(at_least(0)), group=DEBUGGING, help="run only the first N (pass, graph) pairs")
@option("--write-reproducer", metavar="FILE", group=DEBUGGING, help="save the input with this command line in it")
@option("--run-reproducer", is_flag=True, group=DEBUGGING, help="run FILE with the command line saved in it (irtool-crash-*.ir)")
@state_option
@syntax_option
@types_option
@output_option
@many_options
@json_option
def opt(arguments: Arguments, console: Console) -> int:
    """Run the pipeline on all inputs of the file; the output file is written completely or not at all."""
    if is_asked(arguments.files, arguments):
        pipeline(arguments.passes, console)     # a mistake in it is one mistake, not one per file
        vars(arguments)["option_words"].append("--quiet")
        return each_file("opt", arguments.files, arguments, console)
    vars(arguments)["file"] = arguments.files[0] if arguments.files else "-"
    source = console.read(arguments.file)
    if arguments.run_reproducer:
        source = take_header(source, arguments)
    job = Job(arguments, console, source)
    if arguments.write_reproducer:
        console.save(arguments.write_reproducer, job.reproducer())
    results = []
    has_failed = False
    pieces = split(source) if arguments.split_input_file else [source]
    with job.progress:
        for piece in pieces:
            job.progress.step(f"reading {piece.name}", 0)
            text = job.checked(piece, len(pieces) > 1) if arguments.verify_diagnostics else job.reported(piece, len(pieces) > 1)
            has_failed = has_failed or text is None
            results.append(text or "")
    if job.records and arguments.time_passes:
        from irtool.cli.show.reports import timing

        console.err(timing(job.records, arguments.time_passes))
    if job.records and arguments.stats:
        from irtool.cli.show.reports import statistics

        console.err(statistics(job.records, arguments.stats))
    if has_failed:
        return 1
    if not job.is_written:
        console.save(arguments.output, join(results), "ir")
    return 0


class Job:
    """One call of `irtool opt`."""

    def __init__(self, arguments: Arguments, console: Console, source: SourceFile) -> None:
        from irtool.passmanager import PassManager

        self.arguments = arguments
        self.console = console
        self.source = source
        self.manager: PassManager = PassManager(pipeline(arguments.passes, console), verify=arguments.verify_each)
        self.progress = Progress(console, "", len(self.manager.steps) or None)
        self.records: list[PassRecord] = []
        self.bisection: Bisection | None = None
        self.is_written = False
        """Has the result been written already, as an archive?"""
        if arguments.opt_bisect_limit is not None:
            from irtool.cli.show.reports import Bisection

            self.bisection = Bisection(arguments.opt_bisect_limit, console)
        if arguments.dump_pipeline:
            console.err(str(self.manager))
        for flag in ("print_before", "print_after"):
            known_passes(getattr(arguments, flag), self.manager.steps, flag)

    def reported(self, piece: SourceFile, is_part: bool) -> str | None:
        """The printed result of one input; None after its errors were reported."""
        try:
            return self.process(piece, is_part)
        except (UsageError, InternalError):
            raise
        except Error as error:
            if self.arguments.debug:
                from irtool.cli.main import show_traceback

                show_traceback(self.console)
            self.console.report(error)
            return None

    def checked(self, piece: SourceFile, is_part: bool) -> str | None:
        """The same under `--verify-diagnostics`: None if the errors are not those that the text expects."""
        from irtool.cli.expected_diagnostics import check

        diagnostics: list[Diagnostic] = []
        text = ""
        try:
            text = self.process(piece, is_part)
        except (UsageError, InternalError):
            raise
        except Error as error:
            diagnostics = error.coded() if error.diagnostics else [Diagnostic("error", error.message, piece, code=error.code)]
        problems = check(piece, diagnostics)
        for problem in problems:
            self.console.report(problem)
        return None if problems else text

    def process(self, piece: SourceFile, is_part: bool) -> str:
        """The printed result of one input. Raises Error for a wrong input; for a bug, writes a reproducer and raises InternalError."""
        self.console.pass_name = ""
        try:
            return self.transform(piece, is_part)
        except Error:
            raise
        except MemoryError as error:
            where = f"pass '{self.console.pass_name}': " if self.console.pass_name else ""
            raise Error(f"{piece.name}: {where}not enough memory{': ' if str(error) else ''}{error}", code="E0406") from None
        except Exception as error:
            raise_interrupt()
            doubts = self.doubts(piece)
            if doubts:
                raise VerifyError(diagnostics=doubts) from error
            where = f"in pass '{self.console.pass_name}'" if self.console.pass_name else ""
            raise InternalError.of(error, where, self.save_reproducer()) from error

    def transform(self, piece: SourceFile, is_part: bool) -> str:
        """Parse and verify one input, run the passes, and print the result."""
        from irtool.cli.source_places import parse_source

        arguments = self.arguments
        if is_archive_name(arguments.output):
            return self.to_archive(piece, is_part)
        module = parse_source(piece)
        taken = take(module, piece, arguments.file, self.console, is_needed=False)
        if arguments.load_state:
            module, taken = state_loaded(module, piece, arguments, self.console)
        if not module.graphs and not is_part:
            raise Error(f"{piece.name}: no graph in this file", code="E0102")
        if arguments.graph:
            module = alone(module, arguments.graph)
        if arguments.verify_each:
            verify(module)
        if arguments.verify_roundtrip:
            check_roundtrip(module, "the input")
        if any(step.name in COMPUTING for step in self.manager.steps):
            say_what_is_rounded(module, self.console)
        self.run_passes(module, piece, is_part)
        for warning in module.warnings:
            self.console.report(warning)
        if arguments.print_alias:
            from irtool.cli.show.alias_report import alias_report

            for name, graph in zip(module.names(), module.graphs, strict=True):
                self.console.err(alias_report(graph, name, arguments.types))
        if arguments.syntax:
            from irtool.text.dialect_conversion import convert

            convert(module, arguments.syntax)
        keep(module, taken, arguments.file, "-" if is_part else arguments.output, self.console)
        if arguments.verify_roundtrip:
            check_roundtrip(module, "the result")
        return str(module)

    def to_archive(self, piece: SourceFile, is_part: bool) -> str:
        """The same for `-o small.pt`: write every method of an archive, or the graphs of a text, as an archive."""
        from irtool.archives.rewriting import Rewriting
        from irtool.cli.source_places import parse_source

        if is_part:
            raise UsageError("--split-input-file and an archive as output exclude each other", code="E0801")
        if self.arguments.graph or self.arguments.syntax:
            raise UsageError("--graph and --syntax do not go with an archive as output", code="E0801")
        if isinstance(piece, ArchiveSource):
            if self.arguments.load_state:
                load_weights(piece, self.arguments.load_state, self.console)
            first = self.manager.steps[0] if self.manager.steps else None
            freezes = first is not None and first.name == "freeze"
            if first is not None and freezes and first.options.get("eval"):
                piece.archive.eval()
            rewriting = Rewriting.of_archive(piece.archive, piece.method or "forward", freezes)
        else:
            module = parse_source(piece)
            take(module, piece, self.arguments.file, self.console, is_needed=True)
            if self.arguments.load_state:
                module, _ = state_loaded(module, piece, self.arguments, self.console)
            say_what_is_rounded(module, self.console)
            rewriting = Rewriting.of_graphs(module)
        if self.arguments.verify_each:
            verify(rewriting.module)
        self.run_passes(rewriting.module, piece, is_part, rewriting)
        data = rewriting.archive()
        write_whole(self.arguments.output, data)
        self.is_written = True
        return ""

    def run_passes(self, module: Module, piece: SourceFile, is_part: bool, rewriting: Rewriting | None = None) -> None:
        """Run the pipeline on one module, with reports. rewriting: of which the module is, for an archive as output."""
        if not self.manager.steps:
            return
        from irtool.cli.show.reports import Reports

        folder: str = self.arguments.dump_dir or ""
        if folder and is_part:
            folder = f"{folder}/line{piece.first_line}"
        place = f"{piece.name}:{piece.first_line}: " if is_part else ""
        reports = Reports(self.arguments, self.console, len(self.manager.steps), self.progress, place, folder, self.bisection)
        try:
            reports.start(module)
            self.run_watched(module, reports, piece, rewriting)
            reports.finish()
        except VerifyError as error:        # the input was verified: the pass broke it
            doubts = self.doubts(piece)
            if doubts:
                raise VerifyError(diagnostics=doubts) from error
            for each in error.diagnostics:
                each.code = "E0902"
            raise InternalError(diagnostics=error.diagnostics, reproducer=self.save_reproducer()) from error
        finally:
            self.records += reports.records

    def run_watched(self, module: Module, reports: Reports, piece: SourceFile, rewriting: Rewriting | None) -> None:
        """The pipeline, with `--validate` compared after each pass. The inputs are those of the method that FILE names, not of all."""
        arguments = self.arguments
        if not arguments.validate and not arguments.validate_gradients:
            self.manager.run(module, reports)
            return
        from irtool.cli.validating import say_what_was_not_run, validation
        from irtool.passmanager import Observers

        inputs = None if arguments.validate in (None, MADE) else arguments.validate
        state = None if rewriting is None else rewriting.state()
        method = piece.method or "forward" if rewriting is not None and isinstance(piece, ArchiveSource) else ""
        checked = validation(arguments, self.console, inputs, state, method)
        self.manager.run(module, Observers(reports, checked))
        say_what_was_not_run(checked, self.console, "--validate=INPUTS.npz")
        if not arguments.quiet:
            self.console.err(f"validated: {counted(checked.comparisons, 'comparison')}, all equal" if checked.comparisons
                             else "not validated: nothing was compared")

    def doubts(self, piece: SourceFile) -> list[Diagnostic]:
        """Warnings for types in the input that disagree with its operators: results of passes may then fail to verify."""
        from irtool.cli.source_places import parse_source
        from irtool.ir.doubtful_types import doubtful

        return [] if isinstance(piece, ArchiveSource) else doubtful(parse_source(piece))

    # -- reproducers
    def reproducer(self) -> str:
        """The input, with this command line in a comment at the top."""
        arguments = self.arguments
        words = ["opt", f"--passes={self.manager}"]
        for each in opt.params:
            if isinstance(each, Option) and each.name in RECORDED and each.name in arguments.given:
                words.append(each.long_flag + ("" if each.is_flag else f"={getattr(arguments, each.name)}"))
        if not arguments.verify_each:
            words.append("--no-verify-each")
        from shlex import join as shell_join

        loaded = "".join([f"# made with --load {path}, which is needed again\n" for path in arguments.load])
        return f"{HEADER}{shell_join(words)}\n{loaded}{self.source.text}"

    def save_reproducer(self) -> str:
        """Write the reproducer of a bug into the current folder; returns its path, empty if it cannot be written."""
        from zlib import crc32

        text = self.reproducer()
        path = f"irtool-crash-{crc32(text.encode()):08x}.ir"
        try:
            self.console.save(path, text)
        except (UsageError, InternalError):
            return ""
        return path


COMPUTING = ("constant-propagation", "vmap")
"""Passes that compute with constants, and need their arrays."""

RECORDED = ("syntax", "graph", "split_input_file", "opt_bisect_limit", "verify_roundtrip")
"""Options that affect the result, so that a reproducer records them."""


def take_header(source: SourceFile, arguments: Arguments) -> SourceFile:
    """Set the options that a reproducer records; returns the rest of its text. Raises UsageError if it records none."""
    from shlex import split as shell_split

    first, _, rest = source.text.partition("\n")
    try:
        words = shell_split(first.removeprefix(HEADER)) if first.startswith(HEADER) else []
    except ValueError:
        words = []
    if words[:1] != ["opt"]:
        raise UsageError(f"{source.name}: no reproducer: its first line is not '{HEADER}opt ...'", code="E0809")
    recorded = opt.read(words[1:])
    surplus = recorded.given - {"passes", "verify_each", *RECORDED}
    if surplus:         # a reproducer from somebody else must not name files to write
        raise UsageError(f"{source.name}: a reproducer cannot set {', '.join(sorted(surplus))}", code="E0809")
    if any(text.lstrip().startswith("@") for text in recorded.passes):      # or to read
        raise UsageError(f"{source.name}: a reproducer cannot name a file of passes", code="E0809")
    for name in recorded.given - arguments.given:
        setattr(arguments, name, getattr(recorded, name))
    return SourceFile(source.name, rest, source.first_line + 1)


def pipeline(texts: list[str], console: Console) -> list[Step]:
    """The steps of all `--passes`, in order; `@file` is read. Raises PipelineError."""
    from irtool.pipelines import parse_pipeline

    steps = []
    for text in texts:
        if text.startswith("@"):
            steps += parse_pipeline(console.read(text[1:]).text, text[1:], has_comments=True)
        else:
            steps += parse_pipeline(text)
    return steps


def known_passes(names: list[str], steps: tuple[Step, ...], flag: str) -> None:
    """Raises UsageError for a name of `--print-before` or `--print-after` that is no pass of the pipeline."""
    from irtool.ir.errors import did_you_mean

    known = [step.name for step in steps]
    for name in names:
        if name not in known:
            raise UsageError(f"--{flag.replace('_', '-')}: no pass '{name}' in the pipeline{did_you_mean(name, known)}", code="E0806")


def split(source: SourceFile) -> list[SourceFile]:
    """The independent inputs of a file, each with the number of its first line."""
    pieces: list[SourceFile] = []
    lines: list[str] = []
    first = source.first_line
    for number, line in enumerate(source.text.split("\n"), source.first_line):
        if line.rstrip() == SPLIT:
            pieces.append(SourceFile(source.name, "".join(part + "\n" for part in lines), first))
            lines, first = [], number + 1
        else:
            lines.append(line)
    pieces.append(SourceFile(source.name, "\n".join(lines), first))
    return pieces


def join(texts: list[str]) -> str:
    """The inverse of `split`."""
    return f"{SPLIT}\n".join(text if text.endswith("\n") or text is texts[-1] or not text else text + "\n" for text in texts)


def alone(module: Module, name: str) -> Module:
    """A module of one graph of a module, without its pairing with others. Raises Error, which names the choices."""
    graph = module.graph(name)
    graph.metadata = {}
    return Module([graph], module.filename)


def check_roundtrip(module: Module, what: str) -> None:
    """Check that the printed module, parsed and printed again, is the same text. Raises Error at the first line that differs."""
    from irtool.text.parser import parse

    text = str(module)
    again = str(parse(text, f"<printed {module.filename}>"))
    if text == again:
        return
    old, new = text.split("\n"), again.split("\n")
    line = next((i for i, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), min(len(old), len(new)))
    source = SourceFile(f"<printed {module.filename}>", text)
    again_line = new[line] if line < len(new) else "(nothing)"
    message = f"{what} does not survive printing: the line comes back as '{again_line}'"
    raise Error(diagnostics=[Diagnostic("error", message, source, line + 1, 1)], code="E0114")
