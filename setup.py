"""Names the packages; the rest stands in pyproject.toml. `passes/` is `irtool.passes`.

The list is computed: `packages.find` would lose the passes from a wheel built out of the sdist, which does not carry the link
`irtool/passes`, and a list kept by hand would lose new packages.
"""
from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=["irtool", "irtool.*"], exclude=["irtool.passes", "irtool.passes.*"]),
        "irtool.passes",
        *(f"irtool.passes.{name}" for name in find_packages("passes")),
    ],
    package_dir={"irtool": "irtool", "irtool.passes": "passes"},
)
