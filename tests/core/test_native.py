"""The native module is what its stub says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from case_tables import each

import heapwright
from heapwright._native import ffi, lib

STUB = ast.parse(Path(heapwright.__file__).with_name("_native.pyi").read_text(encoding="utf-8"))
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}


def constants(of: str) -> Iterator[str]:
    for node in CLASSES[of].body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def functions(of: str) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in CLASSES[of].body if isinstance(node, ast.FunctionDef)}


def test_the_stub_names_all_that_was_built_and_nothing_else() -> None:
    assert sorted([*constants("_Lib"), *functions("_Lib")]) == sorted(dir(lib))


def test_constants_are_numbers() -> None:
    assert all(type(getattr(lib, name)) is int for name in constants("_Lib"))


@each("name", functions("_Lib"))
def test_functions_take_and_return_what_the_stub_says(name: str) -> None:
    declared = functions("_Lib")[name]
    built = ffi.typeof(getattr(lib, name))
    python = {"primitive": "int", "pointer": "Any", "void": "None"}
    hints = [argument.annotation for argument in declared.args.posonlyargs[1:]] + [declared.returns]
    assert [ast.unparse(hint) for hint in hints if hint] == [python[c.kind] for c in (*built.args, built.result)]


def test_what_the_stub_says_of_ffi_is_there() -> None:
    assert {*constants("_FFI"), *functions("_FFI")} <= set(dir(ffi))
