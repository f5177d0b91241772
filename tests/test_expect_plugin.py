"""The pytest plugin: what passes, what fails, what --accept writes."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irtool.expect import patterns
from irtool.expect.case_compare import only_names_differ
from irtool.expect.cases import CaseError, is_case_file, read_cases
from irtool.expect.run_lines import checked_line
from irtool.ir.errors import edit_distance

ROOT = Path(__file__).parent.parent
GRAPH = "graph(%0 : Tensor):\n  %1 : Tensor = aten::neg(%0)\n  return (%1)\n"
CASE = f"""# A graph comes back as it was
# RUN: fmt
{GRAPH}# ---- out
{GRAPH}"""


class Project:
    """A user's own project in a folder, and pytest runs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "tests").mkdir()
        self.write("pytest.ini", "[pytest]\ntestpaths = tests\n")
        self.write("conftest.py", "pytest_plugins = ['irtool.expect']\n")

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def run(self, *words: str, code: int | None = None, **environment: str) -> str:
        """The output of `pytest words`, in a process of its own."""
        inherited = {name: value for name, value in os.environ.items() if name not in ("CI", "IRTOOL_ACCEPT") and "PYTEST" not in name}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]    # which takes long to import
        done = subprocess.run([*command, *words], cwd=self.folder, text=True, capture_output=True,
                              env={**inherited, "PYTHONPATH": str(ROOT), **environment})
        output = done.stdout + done.stderr
        if code is not None:
            assert done.returncode == code, output
        return output


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


class TestCaseFiles:
    def test_a_case_that_holds_passes(self, project: Project) -> None:
        project.write("tests/expect/fmt/one.ir", CASE)
        assert "1 passed" in project.run(code=0)

    def test_a_project_may_lie_in_a_folder_called_expect(self, tmp_path: Path) -> None:
        (tmp_path / "expect").mkdir()
        project = Project(tmp_path / "expect")
        project.write("tests/data/no_case.ir", GRAPH)
        project.write("tests/expect/one.ir", CASE)
        assert "1 passed" in project.run(code=0)

    def test_a_difference_is_shown_with_the_command_that_accepts_it(self, project: Project) -> None:
        project.write("tests/expect/fmt/one.ir", CASE.replace("  return (%1)\n", "  return (%0)\n", 1))
        output = project.run(code=1)
        assert "-  return (%1)" in output and "+  return (%0)" in output
        assert "to accept: pytest 'tests/expect/fmt/one.ir' --accept" in output

    def test_accept_rewrites_only_the_section_that_differs(self, project: Project) -> None:
        wrong = CASE + "# ====\n" + CASE.replace("as it was", "twice").replace("  return (%1)\n", "  return (%0)\n", 1)
        project.write("tests/expect/fmt/one.ir", wrong)
        assert "accepted: tests/expect/fmt/one.ir" in project.run("--accept", code=0)
        assert project.read("tests/expect/fmt/one.ir") == wrong[: wrong.rindex("  return (%1)")] + "  return (%0)\n"
        project.run(code=0)

    def test_accept_writes_a_first_output(self, project: Project) -> None:
        project.write("tests/expect/fmt/one.ir", CASE.partition("# ---- out")[0])
        project.run("--accept", code=0)
        assert project.read("tests/expect/fmt/one.ir") == CASE

    def test_accepting_under_xdist_loses_nothing(self, project: Project) -> None:
        pytest.importorskip("xdist")
        text = "# ====\n".join(CASE.partition("# ---- out")[0].replace("as it was", f"number {i}") for i in range(12))
        project.write("tests/expect/fmt/one.ir", text)
        project.run("--accept", "-n", "2", code=0)
        assert project.read("tests/expect/fmt/one.ir").count("# ---- out\n") == 12
        assert "12 passed" in project.run("-n", "2", code=0)

    def test_only_names_differ(self, project: Project) -> None:
        title, _, expected = CASE.partition("# ---- out\n")
        project.write("tests/expect/fmt/one.ir", f"{title}# ---- out\n{expected.replace('%1', '%5')}")
        assert "only names differ" in project.run(code=1)
        project.run("--accept=names", code=0)
        assert project.read("tests/expect/fmt/one.ir") == CASE

    def test_errors_are_expected_on_their_line(self, project: Project) -> None:
        project.write("tests/expect/fmt/bad.ir", "# An undefined value is found\n# RUN: fmt\ngraph(%0 : Tensor):\n"
                      "  %1 : Tensor = aten::neg(%7)  # expected-error {{%7}}\n  return (%1)\n")
        assert "1 passed" in project.run(code=0)

    def test_an_error_that_does_not_come_fails(self, project: Project) -> None:
        project.write("tests/expect/fmt/bad.ir", CASE.replace("neg(%0)\n", "neg(%0)  # expected-error {{nope}}\n", 1))
        assert 'tests/expect/fmt/bad.ir:4:34: error: expected error "nope" was not produced' in project.run(code=1)

    def test_an_error_nobody_expects_fails_and_names_the_file_and_its_line(self, project: Project) -> None:
        project.write("tests/expect/fmt/bad.ir", CASE.replace("neg(%0)", "neg(%7)", 1))
        assert "tests/expect/fmt/bad.ir:4:" in project.run(code=1)

    def test_exit_code_and_messages_are_sections(self, project: Project) -> None:
        project.write("tests/expect/cli/usage.ir", "# A wrong command\n# RUN: frobnicate\n# ---- err\n# ---- exit 2\n")
        project.run("--accept", code=0)
        assert "no such command: frobnicate" in project.read("tests/expect/cli/usage.ir")
        project.run(code=0)

    def test_the_environment_of_the_run_does_not_colour_the_output(self, project: Project) -> None:
        project.write("tests/expect/fmt/one.ir", CASE)
        project.run(code=0, FORCE_COLOR="1", IRTOOL_NONSENSE="1")

    def test_the_run_line_may_name_the_folder_and_a_scratch_folder(self, project: Project) -> None:
        project.write("tests/expect/fmt/data.txt", GRAPH)
        project.write("tests/expect/fmt/one.ir", "# A file beside the case\n# RUN: fmt %S/data.txt -o %t/out.ir\n")
        assert "1 passed" in project.run(code=0)

    @pytest.mark.parametrize("line, complaint", [
        ("# RNU: fmt", "expected '# RUN: COMMAND'"),
        ("# RUN fmt", "expected '# RUN: COMMAND'"),
        ("# run: fmt", "commands follow '# RUN:'"),
        ("# CHEKC-NEXT: neg", "expected '# CHECK: PATTERN'"),
        ("# CHECK-NXT: neg", "expected '# CHECK: PATTERN'"),
        ("# CHECK neg", "expected '# CHECK: PATTERN'"),
        ("%1 : int = prim::Constant[value=1]() # CHECK: neg", "on a line of its own"),
        ("# expcted-error {{no}}", "not a directive"),
        ("# expected-eror {{no}}", "expected-error"),
        ("# expected-error {no}", "expected-error"),
        ("# expected-error", "expected-error"),
        ("# exected-warning@+1 {{no}}", "not a directive"),
        ("# ---- otu", "no such section"),
        ("# --- out", "no such section"),
        ("# ---- exit", "no such section"),
        ("# ---- output", "no such section"),
        ("# ===", "separated by"),
    ])
    def test_a_misspelt_directive_fails(self, line: str, complaint: str) -> None:
        with pytest.raises(CaseError, match="f.ir:3: ") as raised:
            read_cases(f"# Some title\n# RUN: fmt\n{line}\n{GRAPH}# ---- out\n{GRAPH}", "f.ir")
        assert complaint in str(raised.value)

    def test_comments_that_are_no_directives_are_fine(self) -> None:
        text = CASE.replace("neg(%0)\n", "neg(%0) # model.py:3:4\n", 1).replace("# RUN", "# Runs of a check, as expected: an error.\n# RUN")
        assert len(read_cases(text, "f.ir")) == 1

    @pytest.mark.parametrize("text, complaint", [
        ("# Title\ngraph():\n", "no line '# RUN: COMMAND'"),
        ("# RUN: fmt\n", "begins with a sentence"),
        ("# T\n# RUN: fmt > %t/x\n", "'>' is for a shell"),
        ("# T\n# RUN: fmt | \n", "a command is missing"),
        ("# T\n# RUN: irtool fmt %s\n", "the input is on standard input"),
        ("# T\n# RUN: fmt\n# CHECK: x\n# ---- out\nx\n", "3: a case has CHECK lines or a section"),
        ("# T\n# CHECK: x\n# run: f() == 1\n", "no line '# RUN: COMMAND'"),
        ("# T\n# RUN: fmt 'x\n", "No closing quotation"),
        ("# T\n# RUN: fmt\n# ====\n# T\n# RUN: fmt\n", "4: the title of line 1 again"),
        ("# T\n# RUN: fmt\n# ---- out\n# ---- out\n", "second section"),
        ("# T\n# RUN: fmt\n# ---- exit 1\nstray\n", "text after"),
    ])
    def test_a_file_that_breaks_the_format_fails(self, text: str, complaint: str) -> None:
        with pytest.raises(CaseError) as raised:
            read_cases(text, "f.ir")
        assert complaint in str(raised.value)

    def test_writing_cases_gives_back_what_was_read(self) -> None:
        text = CASE + "# ====\n# Two\n# RUN: fmt\nx\n# ---- err\n# ---- exit 1\n"
        assert "# ====\n".join(case.text() for case in read_cases(text, "f.ir")) == text

    def test_edit_distance(self) -> None:
        assert [edit_distance(a, b) for a, b in (("", "abc"), ("run", "rnu"), ("check", "chekc"), ("kitten", "sitting"))] == [3, 1, 1, 3]


CHECKED = f"""# A negation is printed
# RUN: irtool opt --passes=dce | irtool fmt -
{GRAPH}# CHECK: aten::neg(%[[X:[0-9]+]])
# CHECK-NOT: aten::exp
# CHECK-NEXT: return (%1)
"""


class TestPatterns:
    """`# CHECK:` lines."""

    @pytest.fixture(autouse=True)
    def filecheck(self) -> None:
        pytest.importorskip("filecheck")

    def test_a_part_of_the_output_is_checked(self, project: Project) -> None:
        project.write("tests/expect/one.ir", CHECKED)
        assert "1 passed" in project.run(code=0)
        project.write("tests/expect/one.ir", CHECKED.replace("return (%1)", "return (%0)").replace("  return (%0)", "  return (%1)"))
        output = project.run(code=1)
        assert "tests/expect/one.ir:8: error:" in output and "the output is\ngraph(%0 : Tensor):" in output
        assert "to accept: pytest 'tests/expect/one.ir' --accept" in output

    def test_accept_changes_only_the_lines_that_do_not_match(self, project: Project) -> None:
        project.write("tests/expect/one.ir", CHECKED.replace("CHECK-NEXT: return (%1)", "CHECK-NEXT: return (%7, %8)"))
        project.run("--accept", code=0)
        assert project.read("tests/expect/one.ir") == CHECKED

    def test_accept_writes_all_lines_in_place_of_an_empty_pattern(self, project: Project) -> None:
        text = CHECKED.partition("# CHECK:")[0]
        project.write("tests/expect/one.ir", f"{text}# CHECK:\n")
        assert "empty check string" in project.run(code=1)
        project.run("--accept", code=0)
        lines = "# CHECK: graph(%0 : Tensor):\n# CHECK-NEXT: %1 : Tensor = aten::neg(%0)\n# CHECK-NEXT: return (%1)\n"
        assert project.read("tests/expect/one.ir") == text + lines
        project.run(code=0)

    def test_patterns_that_need_a_person_are_left_alone(self, project: Project) -> None:
        text = CHECKED.replace("# CHECK-NOT: aten::exp", "# CHECK-NOT: {{.*}}return")
        text = text.replace("# CHECK-NEXT: return (%1)\n", "")
        project.write("tests/expect/one.ir", text)
        assert "cannot write these patterns" in project.run("--accept", code=1)
        assert project.read("tests/expect/one.ir") == text

    @settings(max_examples=25, deadline=None)
    @given(st.lists(st.text("ab[]{}()%.*: =#$\\1", max_size=12).map(str.rstrip), min_size=1, max_size=5))
    def test_written_patterns_match_their_text(self, lines: list[str]) -> None:
        output = "\n".join(["first", *lines, "last", ""])
        assert patterns.failure(patterns.whole(output), output) == ""
        assert patterns.updated(["# CHECK: frst", "# CHECK: lst"], output) is not None


class TestRunLines:
    """`# run: f(inputs) == outputs`."""

    TEXT = f"# A negation\n{GRAPH}# run: graph(2xf32=[1, 2]) ~= 2xf32=[-1, -2] rtol=1e-6\n# run: graph(3) == i64=-3\n"

    def test_graphs_of_the_input_and_of_the_output_are_run(self, project: Project) -> None:
        project.write("tests/expect/one.ir", self.TEXT)
        project.write("tests/expect/two.ir", self.TEXT.replace("negation\n", "negation through a pass\n# RUN: opt --passes=dce\n")
                      + f"# ---- out\n{GRAPH}")
        assert "2 passed" in project.run(code=0)
        project.write("conftest.py", """pytest_plugins = ['irtool.expect']
from irtool.passes import Graph, add_pass


def drop(graph: Graph) -> bool:
    graph.block.set_outputs(graph.inputs)
    return True


add_pass(drop)
""".replace("from irtool.passes import Graph, add_pass", "from irtool import Graph\nfrom irtool.passes import add_pass"))
        project.write("tests/expect/two.ir", self.TEXT.replace("negation\n", "negation through a wrong pass\n# RUN: opt --passes=drop\n")
                      + f"# ---- out\n{GRAPH.replace('(%1)', '(%0)')}")
        output = project.run("--accept", code=1)
        assert "two.ir:6: error: graph gives other values after the command" in output and "1 failed, 1 passed" in output

    def test_accept_writes_the_outputs(self, project: Project) -> None:
        project.write("tests/expect/one.ir", self.TEXT.replace("[-1, -2]", "[1, 2]").replace("i64=-3", "none"))
        output = project.run(code=1)
        assert "one.ir:5: error: graph gives other values" in output and "it gives 2xf32=[-1.0, -2.0]" in output
        project.run("--accept", code=0)
        assert project.read("tests/expect/one.ir") == self.TEXT.replace("[-1, -2]", "[-1.0, -2.0]")
        project.run(code=0)

    @pytest.mark.parametrize("line, complaint", [
        ("graph(1)", "expected '==' or '~=' and the outputs"), ("graph(1 == 2", "expected ',' or ')'"),
        ("graph(x) == 1", "'x' is no value"), ("graph(1) == 1 rtol=2", "expected the end"),
        ("graph(1) ~= 1 rtl=2", "expected rtol=NUMBER"), ("graph(1) ~= 1 rtol=x", "no number"),
        ("graph(@x.npy) == 1", "a file must be the whole value"), ("f(1) == 1", "no graph named 'f'"),
        ("graph(1, 2) == 1", "graph takes 1 inputs, 2 are given"), ("graph('x') == 1", "expected Tensor"),
        ("graph(1) == 1, 2", "output1: missing"),
    ])
    def test_what_is_wrong_with_a_line(self, line: str, complaint: str) -> None:
        (case,) = read_cases(f"# A negation\n{GRAPH}# run: {line}\n", "f.ir")
        text, fault = checked_line(*case.runs.values(), case, "")
        assert complaint in fault and (text == f"# run: {line}" or "missing" in fault)


class TestOtherTools:
    """The plugin is silent in projects that have other files in folders of this name."""

    LLVM = "; RUN: opt < %s -passes=dce -S | FileCheck %s\ndefine i32 @f() {\n; CHECK: ret i32 0\n  ret i32 0\n}\n"

    @pytest.mark.parametrize("text", [LLVM, "# RUN: llc -o - %s | FileCheck %s\n# CHECK: x\n", "# RUN: opt %s -S | FileCheck %s\n",
                                      "; run: %f(1) == 2\n", "", "\xff\n", GRAPH])
    def test_files_of_other_tools_are_no_cases(self, project: Project, text: str) -> None:
        path = project.write("tests/expect/other.ir", "")
        path.write_bytes(text.encode("latin-1"))
        project.write("tests/expect/Test.test_x.expect", "of another library\n")
        project.write("tests/test_x.py", "def test_x():\n    pass\n")
        assert "1 passed" in project.run(code=0)
        assert not is_case_file(text)

    def test_beside_cases_tests_of_others_stay_and_files_without_any_line_do_not(self, project: Project) -> None:
        project.write("tests/expect/one.ir", CASE)
        project.write("tests/expect/llvm.ir", self.LLVM)
        project.run(code=0)
        project.write("tests/expect/two.ir", CASE.replace("# RUN", "# RNU").partition("# ----")[0])
        assert "two.ir: no test claims this file" in project.run(code=1)

    def test_ours_without_filecheck_say_what_to_install(self, project: Project) -> None:
        project.write("tests/expect/one.ir", CHECKED)
        project.write("filecheck.py", "raise ImportError\n")
        assert "pip install 'irtool[expect]'" in project.run(code=1, PYTHONPATH=f"{project.folder}:{ROOT}")


class TestExpectFiles:
    TEST = "class TestJit:\n    def test_x(self, expect):\n        expect({!r})\n        expect('b', 'second')\n"

    def test_a_missing_file_shows_text_and_command(self, project: Project) -> None:
        project.write("tests/test_jit.py", self.TEST.format("hello"))
        output = project.run(code=1)
        assert "no file tests/expect/TestJit.test_x.expect" in output and "hello" in output
        assert "to accept: pytest 'tests/test_jit.py::TestJit::test_x' --accept" in output

    def test_accept_writes_and_the_next_run_passes(self, project: Project) -> None:
        project.write("tests/test_jit.py", self.TEST.format("hello"))
        project.run("--accept", code=0)
        assert project.read("tests/expect/TestJit.test_x.expect") == "hello\n"
        assert project.read("tests/expect/TestJit.test_x-second.expect") == "b\n"
        project.run(code=0)

    def test_the_variable_is_an_alias(self, project: Project) -> None:
        project.write("tests/test_jit.py", self.TEST.format("hello"))
        project.run(code=0, IRTOOL_ACCEPT="1")
        project.run(code=0)

    def test_windows_line_ends_are_no_difference(self, project: Project) -> None:
        project.write("tests/test_jit.py", self.TEST.format("one\ntwo"))
        project.run("--accept", code=0)
        (project.folder / "tests/expect/TestJit.test_x.expect").write_bytes(b"one\r\ntwo\r\n")
        project.run(code=0)

    def test_only_names_differ(self, project: Project) -> None:
        project.write("tests/test_jit.py", self.TEST.format(GRAPH))
        project.run("--accept", code=0)
        project.write("tests/test_jit.py", self.TEST.format(GRAPH.replace("%1", "%5")))
        assert "only names differ; to take them: pytest 'tests/test_jit.py::TestJit::test_x' --accept=names" in project.run(code=1)
        project.run("--accept=names", code=0)
        assert "%5" in project.read("tests/expect/TestJit.test_x.expect")
        project.write("tests/test_jit.py", self.TEST.format(GRAPH.replace("neg", "abs")))
        project.run("--accept=names", code=1)
        assert "neg" in project.read("tests/expect/TestJit.test_x.expect")

    def test_a_failing_test_writes_nothing(self, project: Project) -> None:
        project.write("tests/test_jit.py", self.TEST.format("hello") + "        assert False\n")
        project.run("--accept", code=1)
        assert not (project.folder / "tests/expect").exists()

    def test_the_same_name_twice_fails(self, project: Project) -> None:
        project.write("tests/test_jit.py", "def test_y(expect):\n    expect('a')\n    expect('a')\n")
        assert "give expect() a subname" in project.run("--accept", code=1)

    def test_two_tests_with_one_file_fail(self, project: Project) -> None:
        for name in ("a", "b"):
            project.write(f"tests/test_{name}.py", "class TestJit:\n    def test_x(self, expect):\n        expect('same')\n")
        assert "compared by" in project.run("--accept", code=1)

    def test_functions_and_parameters_have_names_too(self, project: Project) -> None:
        project.write("tests/test_f.py", "import pytest\n@pytest.mark.parametrize('a', [1, 2])\ndef test_y(expect, a):\n    expect(a)\n")
        project.run("--accept", code=0)
        names = sorted(path.name for path in (project.folder / "tests/expect").iterdir())
        assert names == ["test_f.test_y-1.expect", "test_f.test_y-2.expect"]


class TestOrphans:
    def test_a_file_no_test_claims_fails_a_full_run(self, project: Project) -> None:
        project.write("tests/expect/fmt/one.ir", CASE)
        project.write("tests/expect/TestGone.test_x.expect", "old\n")
        output = project.run(code=1)
        assert "tests/expect/TestGone.test_x.expect: no test claims this file" in output and "1 passed, 1 error" in output
        assert "no test claims" in project.run("-n", "2", code=1)

    def test_a_run_of_a_part_does_not_look(self, project: Project) -> None:
        project.write("tests/expect/fmt/one.ir", CASE)
        project.write("tests/expect/TestGone.test_x.expect", "old\n")
        project.run("tests/expect", code=0)
        project.run("-k", "graph", code=0)

    def test_tests_that_did_not_come_so_far_keep_their_files(self, project: Project) -> None:
        project.write("tests/test_jit.py", TestExpectFiles.TEST.format("hello"))
        project.run("--accept", code=0)
        project.write("tests/test_jit.py", TestExpectFiles.TEST.format("hello").replace("        expect('b'", "        1 / 0; expect('b'"))
        assert "no test claims" not in project.run(code=1)
        project.write("tests/test_jit.py", "import pytest\npytest.importorskip('nothing_of_this_name')\n")
        assert "no test claims" not in project.run()


class TestAccept:
    def test_it_is_refused_where_ci_is_set(self, project: Project) -> None:
        project.write("tests/expect/fmt/one.ir", CASE)
        assert "refused where CI is set" in project.run("--accept", code=4, CI="true")

    def test_a_wrong_form_says_where_files_go(self, project: Project) -> None:
        project.write("tests/expect/fmt/one.ir", CASE)
        assert "files go in front" in project.run("--accept", "tests/expect/fmt/one.ir", code=4)


@pytest.mark.parametrize("expected, actual, answer", [
    ("%1 = neg(%0)", "%7 = neg(%0)", True),
    ("%1 = neg(%0)", "%0 = neg(%1)", True),
    ("%1 = neg(%0)", "%0 = neg(%0)", False),
    ("%1 = neg(%0)", "%1 = abs(%0)", False),
    ("%1 = neg(%0)", "%1 = neg(%0)", False),
    ('%1 = c[value="%a"]', '%2 = c[value="%b"]', False),
    ("graph(%0):\n  return (%0)\ngraph(%0):\n", "graph(%a):\n  return (%a)\ngraph(%b):\n", True),
])
def test_only_names_differ(expected: str, actual: str, answer: bool) -> None:
    assert only_names_differ(expected, actual) is answer
