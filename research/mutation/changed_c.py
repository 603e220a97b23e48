"""A pytest plugin: the core's text, and the library of the engine, are those that a mutant changed (`mutants_c.py`)."""

from __future__ import annotations

import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

CSRC, NATIVE = "HEAPWRIGHT_TESTS_CSRC", "HEAPWRIGHT_TESTS_NATIVE"
"""In the environment: a folder in place of csrc/, and a library in place of the installed one."""


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Before anything of the package is imported."""
    if library := os.environ.get(NATIVE):
        spec = spec_from_file_location("heapwright._native", library)
        assert spec and spec.loader
        sys.modules["heapwright._native"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
    if core := os.environ.get(CSRC):
        from heapwright._generate import core as sources

        sources.core_directory = lambda: Path(core)
