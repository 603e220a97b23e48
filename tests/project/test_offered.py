"""What a module says it offers is there."""

from __future__ import annotations

import importlib
import pkgutil

import heapwright


def test_every_name_that_a_module_offers_is_there() -> None:
    result = pkgutil.walk_packages(heapwright.__path__, "heapwright.")
    names = [item.name for item in result if "recorder" not in item.name]
    modules = [heapwright, *map(importlib.import_module, names)]
    offering = [module for module in modules if hasattr(module, "__all__")]
    assert len(offering) > 3
    missing = [f"{item.__name__}.{name}" for item in offering for name in item.__all__ if not hasattr(item, name)]
    assert missing == []
