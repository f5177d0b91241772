"""Names the packages; the rest stands in pyproject.toml. `passes/` is `irtool.passes`.

The list is computed: `packages.find` would lose the passes from a wheel built out of the sdist, which does not carry the link
`irtool/passes`, and a list kept by hand would lose new packages.
"""
import compileall
import sys

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=["irtool", "irtool.*"], exclude=["irtool.passes", "irtool.passes.*"]),
        "irtool.passes",
        *(f"irtool.passes.{name}" for name in find_packages("passes")),
    ],
    package_dir={"irtool": "irtool", "irtool.passes": "passes"},
)

if "editable_wheel" in sys.argv:
    # pip compiles the modules that it copies, but not a checkout. Where PYTHONDONTWRITEBYTECODE is set or the checkout is read-only
    # later, every start would compile them again, which takes longer than all else that a short command does.
    for folder in ("irtool", "passes"):
        compileall.compile_dir(folder, quiet=2)
