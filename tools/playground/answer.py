"""Runs one command line of irtool in the playground; loaded by tools/playground/prepare.mjs or, with NumPy, by the page."""
import io
import os
import sys

sys.path.append("/packages")
os.makedirs("/playground", exist_ok=True)
os.chdir("/playground")


def answer(words: list[str], piped: str) -> tuple[int, str, str, str | None]:
    """Exit code, output, messages, and the page that was written, if one was. piped: standard input."""
    from irtool.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    code = main(words, io.BytesIO(piped.encode()), out, err)
    page = None
    if os.path.exists("page.html"):
        with open("page.html", encoding="utf-8") as file:
            page = file.read()
        os.remove("page.html")
    return code, out.getvalue(), err.getvalue(), page
