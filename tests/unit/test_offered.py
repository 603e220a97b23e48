"""What a module says it offers is there."""

from __future__ import annotations

import importlib
import pkgutil

import heapwright


def test_every_name_that_a_module_offers_is_there() -> None:
    found = pkgutil.walk_packages(heapwright.__path__, "heapwright.")
    names = [one.name for one in found if "recorder" not in one.name]
    modules = [heapwright, *map(importlib.import_module, names)]
    offering = [one for one in modules if hasattr(one, "__all__")]
    assert len(offering) > 3
    missing = [f"{one.__name__}.{name}" for one in offering for name in one.__all__ if not hasattr(one, name)]
    assert missing == []
