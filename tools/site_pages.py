"""Pages of the site that no file contains, and links between those that files contain (`make docs`; mkdocs calls the `on_...` functions).

- README.md is the first page; CONTRIBUTING.md, CHANGELOG.md and the documents of examples/ are pages beside those of docs/.
- A page per pass, per family of operators and per command, made from their tables; a page per package, from docstrings of public names.
- A file of the repository to which a document links is a page, too: its text. So no link leaves the site, but those to other sites.
"""
from __future__ import annotations

import json
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]
from table_pages import SECTIONS  # noqa: E402

OUTSIDE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md")
"""Documents outside docs/ that are pages whether or not another links to them."""
FENCE = re.compile(r"(?ms)^( *)(```+).*?^\1\2 *$")
CODE_OR_LINK = re.compile(r"(`+)(?:[^`\n]|\n(?!\n))*?\1|\[(?P<words>(?:[^][`]|`[^`]*`)*)\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")
LANGUAGES = {".py": "python", ".ir": "irtool", ".toml": "toml"}


# -- documents
def address(path: str) -> str:
    """The page of a file of the repository: `index.md` of README.md, `source/irtool/ir/graph.py.md` of the module."""
    if path == "README.md":
        return "index.md"
    if path.endswith((".md", ".ipynb")) or path.startswith("docs/"):
        return path.removeprefix("docs/").replace(".ipynb", ".md")
    return f"source/{path}/index.md" if (ROOT / path).is_dir() else f"source/{path}.md"


def target_of(link: str, document: str) -> str:
    """The file of the repository that a link of a document means: for a folder with a README.md that file."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(document), link))
    return f"{path}/README.md" if (ROOT / path / "README.md").exists() else path


def parts(text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a document; true for blocks of code."""
    end = 0
    for block in FENCE.finditer(text):
        yield text[end:block.start()], False
        yield block[0], True
        end = block.end()
    yield text[end:], False


def links(document: str) -> Iterator[str]:
    """The files of the repository to which a document links."""
    for part, is_code in parts((ROOT / document).read_text(encoding="utf-8")):
        yield from () if is_code else [target_of(each["path"], document) for each in CODE_OR_LINK.finditer(part) if each["path"]]


def for_the_site(text: str, document: str) -> str:
    """A document with links to pages, and blocks of code in the language that colours them."""
    def link(match: re.Match[str]) -> str:
        if not match["path"]:
            return match[0]
        target = target_of(match["path"], document)
        page = posixpath.relpath(address(target), posixpath.dirname(address(document)) or ".")
        words = title(target) if match["words"].endswith(".md") else match["words"]
        return f"[{words}]({page}{match['anchor'] or ''})"
    return "".join([fenced_for_the_site(part) if is_code else CODE_OR_LINK.sub(link, part) for part, is_code in parts(text)])


def title(document: str) -> str:
    """The first heading of a document."""
    return (ROOT / document).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def fenced_for_the_site(block: str) -> str:
    """A block of code: `python torch` names where it runs, doctests have prompts, and remarks that are for the test alone."""
    block = re.sub(r"\A( *```+)python torch\n", r'\1python title="with torch"' + "\n", block)
    block = re.sub(r"\A( *```+)python (\S+\.py)\n", r'\1python title="\2"' + "\n", block)
    if ">>> " in block and block.lstrip().startswith("```python\n"):
        block = re.sub(r" +# doctest: .*", "", block.replace("```python\n", "```pycon\n", 1).replace("<BLANKLINE>\n", "\n"))
        block = re.sub(r"\n+( *```)\Z", r"\n\1", block)
    return block


def file_page(path: str) -> str:
    """A file as a page; of a folder the list of its files."""
    place = ROOT / path
    head = f"---\nsearch:\n  exclude: true\n---\n\n# {path}\n\n"
    if place.is_dir():
        return head + "\n".join(f"- `{each.name}`" for each in sorted(place.iterdir()) if not each.name.startswith(("_", "."))) + "\n"
    text = place.read_text(encoding="utf-8")
    return head + fenced(text, LANGUAGES.get(place.suffix, "text"))


def notebook_page(path: Path) -> str:
    """A notebook with what its cells showed."""
    out = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        out.append(text + "\n" if cell["cell_type"] == "markdown" else fenced(text, "python"))
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            html = "".join(data.get("text/html", ""))
            plain = "".join(data.get("text/plain", "") or output.get("text", ""))
            out.append(f'<div class="output" tabindex="0">{html}</div>\n' if html else fenced(plain, "text"))
    return "\n".join(out)


def fenced(text: str, language: str) -> str:
    """A block of code, whatever it contains."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def documents() -> dict[str, str]:
    """Pages of documents outside docs/, and of all files to which documents link, by address."""
    pages = {address(f"docs/notebooks/{path.name}"): notebook_page(path) for path in (ROOT / "docs/notebooks").glob("*.ipynb")}
    waiting = [*OUTSIDE, *(path.relative_to(ROOT).as_posix() for path in (*(ROOT / "docs").rglob("*.md"), *ROOT.glob("passes/*.py")))]
    seen = set(waiting)
    for path in waiting:        # which grows
        if not path.startswith("docs/"):
            pages[address(path)] = (ROOT / path).read_text(encoding="utf-8") if path.endswith(".md") else file_page(path)
        if path.endswith(".md"):
            further = [each for each in links(path) if each not in seen and (ROOT / each).exists() and not each.startswith("docs/")]
            waiting += dict.fromkeys(further)
            seen.update(further)
    return pages


# -- what mkdocs calls
MADE = {section: make() for section, make in SECTIONS.items()}
"""The pages of each section that is made, by address."""


def on_config(config: Any) -> Any:
    """The sections that are made end the reference; decisions end what is said of the inside."""
    parts = {name: entry for part in config.nav for name, entry in part.items()}
    parts["Reference"] += [{section: list(pages)} for section, pages in MADE.items()]
    parts["Inside"].append({"Decisions": sorted(f"adr/{path.name}" for path in (ROOT / "docs/adr").glob("*.md"))})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made."""
    from mkdocs.structure.files import File

    assets = {f"assets/{path.name}": path.read_text(encoding="utf-8") for path in (ROOT / "tools/site").iterdir()}
    for pages in (documents(), *MADE.values(), assets):
        for uri, text in pages.items():
            files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Documents link to pages. The changelog, which names everything, comes last where someone searches."""
    uri = page.file.src_uri
    if uri == "CHANGELOG.md":
        page.meta["search"] = {"boost": 0.2}
    document = "README.md" if uri == "index.md" else uri if (ROOT / uri).is_file() else f"docs/{uri}"
    return for_the_site(markdown, document) if (ROOT / document).is_file() else markdown


def on_post_page(output: str, **_: Any) -> str:
    """The theme's dialog has no name, which who hears a page needs."""
    return output.replace('data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"')
