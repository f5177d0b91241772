"""Names of TorchScript's types that Python does not have, for the functions that are written in it."""
from typing import TypeAlias

number: TypeAlias = int | float | complex
