"""Many cases that take a millisecond in one test: a test of its own takes each of them four more."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def each(
    names: str | Sequence[str],
    cases: Iterable[Any],
    ids: Callable[[Any], object] | Iterable[object] | None = None,
) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """As `pytest.mark.parametrize`, for tests without fixtures: all are tried; a failure names the failed ones."""
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    all_cases = [_values(case, keys) for case in cases]
    labels = None if ids is None or callable(ids) else list(ids)

    def name(number: int) -> str:
        if labels is not None:
            return str(labels[number])
        return ", ".join(str(ids(all_case)) if callable(ids) else repr(all_case) for all_case in all_cases[number])

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        @functools.wraps(test)
        def every() -> None:
            failed: dict[int, BaseException] = {}
            for number, values in enumerate(all_cases):
                try:
                    test(**dict(zip(keys, values, strict=True)))
                except (Exception, pytest.fail.Exception) as error:
                    failed[number] = error
            if failed:
                output = "\n".join(f"[{name(number)}]: {error}" for number, error in failed.items())
                first = next(iter(failed.values()))
                raise AssertionError(f"{len(failed)} of {len(all_cases)} cases\n{output}") from first
            assert all_cases, "no cases"

        del every.__wrapped__  # whose arguments pytest would take for fixtures
        return every

    return decorate


def _values(case: Any, keys: Sequence[str]) -> tuple[Any, ...]:
    if isinstance(case, ParameterSet):
        assert not case.marks
        return tuple(case.values)
    return tuple(case) if len(keys) > 1 else (case,)
