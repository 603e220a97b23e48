"""What the build read of the core is what the generator would read now."""

from __future__ import annotations

from typing import Any

import pytest

from heapwright._generate import core
from heapwright._generate import syntax as c
from heapwright._generate.core import core_sources, defined, parsed


def told(part: Any) -> Any:
    """All that a tree holds, as plain values."""
    if isinstance(part, (c.Node, c.SourceFile)):
        return type(part).__name__, {name: told(value) for name, value in vars(part).items()}
    if isinstance(part, dict):
        return {name: told(value) for name, value in part.items()}
    return [told(item) for item in part] if isinstance(part, (list, tuple)) else part


@pytest.mark.parametrize("shared", [False, True])
def test_the_build_has_read_the_core_as_it_is_read_now(shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = parsed(core_sources(), defined(shared))
    of_build = core._kept()[1][tuple(sorted(defined(shared)))]
    assert kept is of_build, "the build read other sources, or as another reader: make setup"
    monkeypatch.setattr(core, "_kept", lambda: ("", {}))
    fresh = parsed(core_sources(), defined(shared))
    assert fresh is not kept
    assert told(fresh) == told(kept)


def test_other_sources_are_read_anew() -> None:
    changed = [(file, f"{text}int hw_added(void);\n" if file == "heap.h" else text) for file, text in core_sources()]
    source = next(entry for entry in parsed(changed, defined(False)) if entry.file == "heap.h")
    assert [item.name for item in source.items if isinstance(item, c.Function)][-1] == "hw_added"
