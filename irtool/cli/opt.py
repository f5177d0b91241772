"""The form of reproducers: a line with HEADER and the words of an `irtool opt`, then the input. Scripts may import HEADER."""
HEADER = "# irtool: "
