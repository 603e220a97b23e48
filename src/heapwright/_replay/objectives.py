"""Objectives computed from metrics: arithmetic, as in SQL and Python, or a Python function."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from functools import cache, reduce
from typing import TYPE_CHECKING, Any

from heapwright._support.errors import ParameterError, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CALLS = "calls"
"""Names that expressions may use in addition to metrics: the number of calls of the traces."""

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_FUNCTIONS = ("abs", "greatest", "least", "ln", "sqrt")

DEEPEST = 64
"""Deepest nesting of operations, which recursive functions walk."""


def is_expression(text: str) -> bool:
    """Whether it is an expression, and not a name."""
    return not text.strip().isidentifier()


@cache
def parsed(text: str, known: Collection[str]) -> ast.expr:
    """The tree of an expression of `known` names; raises ParameterError with the fault and valid input."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise _wrong(text, "no arithmetic") from None
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    if level:
        raise _wrong(text, f"more than {DEEPEST} operations within one another")
    if not any(isinstance(node, ast.Name) and node.id not in _FUNCTIONS for node in ast.walk(tree)):
        raise _wrong(text, "names no metric")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in (*known, CALLS, *_FUNCTIONS):
            nearest = did_you_mean(node.id, (*known, CALLS), "known")
            raise ParameterError(f"{text!r}: {node.id!r} is no metric; {nearest}", parameter="objectives")
    _check(tree, text)
    return tree


def _check(node: ast.expr, text: str) -> None:
    """Raise ParameterError unless the expression consists of metrics, numbers, operators and functions."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        _check_call(node, node.func.id, text)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        _check(node.left, text)
        _check(node.right, text)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        _check(node.operand, text)
    elif not _is_value(node):
        raise _wrong(text, f"{ast.unparse(node)!r} has no meaning here")


def _check_call(node: ast.Call, name: str, text: str) -> None:
    several = name in ("greatest", "least")
    if node.keywords or (len(node.args) != 1 and not (several and node.args)):
        raise _wrong(text, f"{name} takes {'one value or more' if several else 'one value'}")
    for arg in node.args:
        _check(arg, text)


def _is_value(node: ast.expr) -> bool:
    """Whether an expression is a metric or a number; type() excludes True and False, which are of a subclass of int."""
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float)
    return isinstance(node, ast.Name) and node.id not in _FUNCTIONS


def _wrong(text: str, what: str) -> ParameterError:
    return ParameterError(
        f"{text!r}: {what}; valid: metrics, calls, numbers, + - * / ( ), {', '.join(_FUNCTIONS)}",
        parameter="objectives",
    )


def values_of(tree: ast.expr, columns: Mapping[str, Floats]) -> Floats:
    """The values of an expression; NaN if a named metric is NaN, or after a division by 0.

    Raises ParameterError for values below 0: objectives are compared by ratios.
    """
    import numpy as np

    with np.errstate(all="ignore"):
        result = np.asarray(_value(tree, columns), np.float64)
    result = np.where(np.isfinite(result), result, np.nan)
    if (result < 0).any():
        raise ParameterError(
            f"'{ast.unparse(tree)}' is below 0 of some recipe, and less is better; if more is, write 1 / KEY",
            parameter="objectives",
        )
    return result


def _value(node: ast.expr, columns: Mapping[str, Floats]) -> Any:
    import numpy as np

    if isinstance(node, ast.Constant):
        return float(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return columns[node.id]
    if isinstance(node, ast.UnaryOp):
        value = _value(node.operand, columns)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, columns), _value(node.right, columns)
        return _OPERATORS[type(node.op)](np.float64(left), np.float64(right))
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    call = {"abs": np.abs, "greatest": np.maximum, "least": np.minimum, "ln": np.log, "sqrt": np.sqrt}[node.func.id]
    arguments = [_value(arg, columns) for arg in node.args]
    return reduce(call, arguments) if node.func.id in ("greatest", "least") else call(arguments[0])


# ---- functions -----------------------------------------------------------------------------------------------------


class Term:
    """A metric or an arithmetic expression, as text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: Any) -> Term:
        return _joined(self, "+", other)

    def __radd__(self, other: Any) -> Term:
        return _joined(other, "+", self)

    def __sub__(self, other: Any) -> Term:
        return _joined(self, "-", other)

    def __rsub__(self, other: Any) -> Term:
        return _joined(other, "-", self)

    def __mul__(self, other: Any) -> Term:
        return _joined(self, "*", other)

    def __rmul__(self, other: Any) -> Term:
        return _joined(other, "*", self)

    def __truediv__(self, other: Any) -> Term:
        return _joined(self, "/", other)

    def __rtruediv__(self, other: Any) -> Term:
        return _joined(other, "/", self)

    def __abs__(self) -> Term:
        return Term(f"abs({self.text})")


def _joined(left: Any, sign: str, right: Any) -> Term:
    if not all(isinstance(item, Term | int | float) for item in (left, right)):
        raise TypeError(f"no {sign} of {left!r} and {right!r}")
    texts = [item.text if isinstance(item, Term) else repr(float(item)) for item in (left, right)]
    return Term(f"({texts[0]} {sign} {texts[1]})")


def text_of(function: Callable[[Mapping[str, Any]], Any], known: Collection[str]) -> str:
    """The expression of a function of a dictionary of metrics, which a study can store.

    Raises ParameterError if the function does more than arithmetic.
    """
    try:
        result = function({key: Term(key) for key in (*known, CALLS)})
    except KeyError as error:
        nearest = did_you_mean(str(error.args[0]), (*known, CALLS), "known")
        raise ParameterError(f"{error.args[0]!r} is no metric; {nearest}", parameter="objectives") from None
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"a function may do arithmetic with metrics alone: {error}", parameter="objectives"
        ) from None
    if not isinstance(result, Term):
        raise ParameterError("a function has to return a value computed from metrics", parameter="objectives")
    return result.text
