"""The errors a person can act on. A command turns each into one line on stderr and exit code 1."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class HeapwrightError(Exception):
    """Input that cannot be used: the message says what, where, and what would be valid, in one line.

    `parameter` names the parameter of the Python API whose value would help, if there is one; the command line adds
    its flag.
    """

    def __init__(self, message: str, *, parameter: str | None = None) -> None:
        from heapwright._support.names import addressed

        message = addressed(message)
        super().__init__(message)
        self.message = message
        self.parameter = parameter


class ForeignHeapError(HeapwrightError):
    """A foreign heap that is there cannot be used, or failed on a trace: costs its own row of a table, nothing else."""


class ParameterError(HeapwrightError):
    """A value of a parameter that no input makes valid; on the command line that is a wrong flag, exit code 2."""

    def __str__(self) -> str:
        return f"{self.parameter}: {self.message}"


def did_you_mean(name: str, known: Iterable[str], valid: str = "valid") -> str:
    """Return "did you mean A or B?" where a known name is near, else "valid: " and all of them."""
    from difflib import get_close_matches

    known = list(known)
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(near)}?" if near else f"{valid}: {', '.join(known)}"


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return what is said of a key in a TOML table that nothing reads: the nearest known one, and all of them."""
    from difflib import get_close_matches

    known = list(known)
    near = get_close_matches(key, known, n=1)
    guess = f' did you mean "{near[0]}"?' if near else ""
    return f'unknown key "{key}";{guess} valid: {", ".join(known)}'
