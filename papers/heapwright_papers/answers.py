"""Statements judged by what their TOML says: expressions over a page's results, and sentences with such in braces.

The expressions are Python's without statements, assignments, lambdas and names that begin with an underscore. They see
`FUNCTIONS` and what the page hands over, and nothing else. A sentence is read as the text of an f-string is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from statistics import mean, median
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heapwright_papers.verdicts import HOLDS, LARGER, Cause, Kind, Verdict

_ALLOWED = (
    *(ast.Expression, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.Call, ast.keyword, ast.Starred),
    *(ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.List, ast.Tuple, ast.Dict, ast.Set),
    *(ast.JoinedStr, ast.FormattedValue, ast.GeneratorExp, ast.ListComp, ast.DictComp, ast.SetComp, ast.comprehension),
    *(ast.operator, ast.boolop, ast.unaryop, ast.cmpop, ast.expr_context),
)
_KEYS = {"kind", "on", "each", "let", "unless", "lacks", "here"}
_KEYS |= {"holds", "at_least", "larger", "fitted", "incomparable", "noise", "spread", "cause", "why"}


def percent(share: float, digits: int = 0) -> str:
    """A share as a percentage."""
    return f"{share:.{digits}%}".replace("%", " %")


def near(ours: float, theirs: float, tolerance: float = 0.1) -> bool:
    """Whether our number is the paper's, up to a tenth of it."""
    return abs(ours / theirs - 1) <= tolerance


class AbsentError(Exception):
    """Something was requested that a page did without; the text says what is missing."""


class Absent:
    """In place of results that a page does without: what hangs on them is not tested, and says `why`."""

    def __init__(self, why: str) -> None:
        self._why = why

    def _asked(self, *_args: object, **_named: object) -> Any:
        raise AbsentError(self._why)

    __getattr__ = __getitem__ = __iter__ = __len__ = __call__ = __bool__ = __contains__ = _asked


NO_PACKETS = Absent("real networks need packet tables: --packets DIR")


FACTOR = 2
"""By how much what a reduction saves, and what it leaves, may differ from the paper's to hold."""


def band(result: float, stated: float) -> int:
    """Where a reduction in per cent stands to the paper's: 0 if both parts are within FACTOR of it, else -1 or 1.

    A smaller one is 0 within a tenth of the paper's, too, as any number: its sentence leaves out what remains.
    """
    parts = ((100 - result) / (100 - stated), result / stated)
    if all(1 / FACTOR <= part <= FACTOR for part in parts) or (result < stated and near(result, stated)):
        return 0
    return 1 if result > stated else -1


def listed(values: Iterable[int]) -> str:
    """Whole numbers, one after the other."""
    return ", ".join(f"{value:,}" for value in values)


def span(values: Sequence[str]) -> str:
    """From the first to the last of sorted values."""
    return values[0] if values[0] == values[-1] else f"{values[0]} to {values[-1]}"


def between(values: Iterable[float]) -> str:
    """From the least to the most, in two digits where they are below 10."""
    return span([f"{value:.2g}" if value < 10 else f"{value:,.0f}" for value in sorted(values)])


def rank_correlation(item: Sequence[float] | NDArray[Any], other: Sequence[float] | NDArray[Any]) -> float:
    """Spearman's, over values of the same things."""
    return float(np.corrcoef(_ranks(item), _ranks(other))[0, 1])


def _ranks(values: Sequence[float] | NDArray[Any]) -> NDArray[np.float64]:
    """The place of each value in their order; equal ones have their mean place."""
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    places = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(places[where])


_PYTHONS = (abs, all, any, bool, dict, enumerate, float, int, len, list, max, min, next, range, round, set, sorted, str)
_MORE = (sum, tuple, zip, mean, median, pairwise, band, between, listed, near, percent, span)
FUNCTIONS: Mapping[str, Callable[..., Any]] = {one.__name__: one for one in (*_PYTHONS, *_MORE)}
"""What an expression may call, in addition to what the page hands over."""


@cache
def compiled(expression: str) -> CodeType:
    """Ready to be evaluated. Raises ValueError or SyntaxError for what is no expression of the language."""
    tree = ast.parse(f"({expression})", mode="eval")
    for node in ast.walk(tree):
        hidden = getattr(node, "attr", "").startswith("_") or getattr(node, "id", "").startswith("_")
        if not isinstance(node, _ALLOWED) or hidden or getattr(node, "attr", "").startswith("format"):
            raise ValueError(f"{expression}: {type(node).__name__} is not allowed in a statement's expression")
    return compile(tree, "statement", "eval")


def evaluate(expression: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression. Raises ValueError for what the language lacks, else as Python does."""
    return eval(compiled(expression), {"__builtins__": {}, **FUNCTIONS, **names})


def sentence(text: str, names: Mapping[str, Any]) -> str:
    """The text with the values of what stands in braces."""
    return str(evaluate(literal(text), names)) if "{" in text else text


def literal(text: str) -> str:
    """The sentence as an f-string; the end keeps a quote that is the last of it from the closing ones."""
    return f"f'''{text}.'''[:-1]"


def judged(answer: Mapping[str, Any], names: Mapping[str, Any]) -> Iterator[tuple[str, Verdict, str]]:
    """What is found here, the verdict, and on which traffic, of an answer in a statement's TOML.

    Args:
        answer: its keys, as README.md lists them, all but `here` optional.
        names: the page's results.

    Raises ValueError for another key.
    """
    if unknown := answer.keys() - _KEYS:
        raise ValueError(f"{', '.join(sorted(unknown))}: no key of an answer; valid: {', '.join(sorted(_KEYS))}")
    try:
        untold = evaluate(answer.get("unless", "''"), names)
    except AbsentError as absent:
        untold = str(absent)
    if untold:
        yield "–", Verdict(Kind.NOT_TESTED, why=untold), ""
        return
    ((name, values),) = answer.get("each", {"": "[None]"}).items()
    for value in evaluate(values, names):
        known = {**names, name: value}
        on = sentence(answer.get("on", ""), known)
        try:
            if lacking := evaluate(answer.get("lacks", "''"), known):
                yield "–", Verdict(Kind.NOT_TESTED, why=lacking), on
                continue
            for item, expression in answer.get("let", {}).items():
                known[item] = evaluate(expression, known)
            result = sentence(answer["here"], known), _verdict(answer, known), on
        except AbsentError as absent:
            result = "–", Verdict(Kind.NOT_TESTED, why=str(absent)), on
        yield result


_SIDES = ("holds", "at_least", "larger", "noise", "fitted", "kind")


def one_sided(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The same with what is stated as the least: it holds, too, where the difference is larger.

    That is its `at_least`, where it has one.
    """
    rest = {key: value for key, value in answer.items() if key not in _SIDES}
    either = " or ".join(f"({answer[key]})" for key in ("holds", "larger") if key in answer)
    return rest | {"holds": answer.get("at_least", either)}


def _verdict(answer: Mapping[str, Any], names: Mapping[str, Any]) -> Verdict:
    if "incomparable" in answer:
        return Verdict(Kind.NOT_COMPARABLE, why=sentence(answer["incomparable"], names))
    if "holds" not in answer:
        return Verdict(Kind(answer.get("kind", Kind.SHOWN)), why=sentence(answer.get("why", ""), names))
    if evaluate(answer["holds"], names):
        if "fitted" in answer:
            return Verdict(Kind.FITTED, why=answer["fitted"])
        return Verdict(Kind(answer["kind"])) if "kind" in answer else HOLDS
    if evaluate(answer.get("noise", "False"), names):
        return Verdict(Kind.NOISE, why=sentence(answer["spread"], names))
    if evaluate(answer.get("larger", "False"), names):
        return LARGER
    why = sentence(answer.get("why", "the numbers beside it say otherwise"), names)
    return Verdict(Kind.FAILS, Cause(sentence(answer.get("cause", Cause.UNEXPLAINED.value), names)), why)
