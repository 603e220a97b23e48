"""The functions of generated C: their bodies, what they call, and how they loop."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, cached_property

from heapwright._generate.emit import generated_files
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo

DEFINITION = re.compile(r"^(?!#|/|\s)[^\n;={}]*?\b(\w+)\(([^;{}]*?)\)\n\{\n(.*?)^\}$", re.MULTILINE | re.DOTALL)
LOOP = re.compile(r"\b(?:for|while) \(")


@cache
def zoo_files(name: str) -> dict[str, str]:
    """The generated files of a zoo allocator, its test among them."""
    return generated_files(zoo.load(name))


def without_tests(files: Mapping[str, str]) -> dict[str, str]:
    """What a program is built of."""
    return {file: text for file, text in files.items() if "_test" not in file}


def shipped(recipe: Recipe) -> dict[str, str]:
    """The files that a program with a recipe's allocator is built of."""
    return without_tests(generated_files(recipe))


class Functions:
    """All functions that some files define. Of a function with several definitions (`#if`) all bodies count."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.text = re.sub(r"/\*.*?\*/", "", "\n".join(files.values()), flags=re.DOTALL)

    @cached_property
    def bodies(self) -> dict[str, str]:
        results: dict[str, str] = {}
        for name, _, body in DEFINITION.findall(self.text):
            results[name] = results.get(name, "") + body
        return results

    def called(self, name: str) -> set[str]:
        """Functions that a function calls itself."""
        return set(re.findall(r"\b(\w+)\(", self.bodies[name])) & set(self.bodies)

    def reached(self, *names: str) -> set[str]:
        """Functions that calls of these lead to, themselves among them."""
        results, waiting = set[str](), [*names]
        while waiting:
            name = waiting.pop()
            if name not in results:
                results.add(name)
                waiting += self.called(name)
        return results

    def looping(self, *names: str) -> set[str]:
        """The functions of them that loop."""
        return {name for name in self.reached(*names) if LOOP.search(self.bodies[name])}
