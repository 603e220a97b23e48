"""Macros of C that paste names, written out: the parser knows what they make, not what they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_FUNCTION_LIKE = re.compile(r"^#define (\w+)\(([\w, .]*)\)((?:.*\\\n)*.*)$", re.MULTILINE)


@dataclass(frozen=True)
class _Pasting:
    """A function-like macro that pastes names (`##`); `...` is the last of its parameters, `__VA_ARGS__`."""

    parameters: tuple[str, ...]
    body: str

    def written(self, arguments: list[str]) -> str:
        """The body with the arguments in place."""
        count = len(self.parameters) - 1
        if self.parameters[-1] == "__VA_ARGS__":
            arguments = [*arguments[:count], ", ".join(arguments[count:])]
        values = dict(zip(self.parameters, arguments, strict=True))
        words = re.sub(r"\w+", lambda word: values.get(word.group(), word.group()), self.body)
        return re.sub(r"\s*##\s*", "", words)


def written_out(sources: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The (file, text) pairs without macros that paste names; every line keeps its number."""
    pasting = _pasting_macros(text for _, text in sources)
    return [(file, _without_pasting(text, pasting)) for file, text in sources]


def _pasting_macros(texts: Iterable[str]) -> dict[str, _Pasting]:
    results = {}
    for text in texts:
        for name, parameters, body in _FUNCTION_LIKE.findall(text):
            if "##" in body:
                names = tuple(word.strip() for word in parameters.replace("...", "__VA_ARGS__").split(","))
                results[name] = _Pasting(names, re.sub(r"\s*\\\n\s*", " ", body).strip())
    return results


def _without_pasting(text: str, macros: Mapping[str, _Pasting]) -> str:
    """The text with calls in place of the macros that make them, and without their definitions."""
    text = _FUNCTION_LIKE.sub(lambda macro: "\n" * macro[0].count("\n") if macro[1] in macros else macro[0], text)
    calls = re.compile(rf"\b({'|'.join(macros)})\(")
    while macros and (call := calls.search(text)):
        arguments, end = _arguments(text, call.end())
        lines = "\n" * text.count("\n", call.start(), end)
        text = text[: call.start()] + macros[call[1]].written(arguments) + lines + text[end:]
    return text


def _arguments(text: str, start: int) -> tuple[list[str], int]:
    """The arguments of a call whose parenthesis was opened before `start`, and where it ends."""
    arguments = [""]
    depth = 1
    for index, sign in enumerate(text[start:], start):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return [argument.strip() for argument in arguments], index + 1
        if sign == "," and depth == 1:
            arguments.append("")
        else:
            arguments[-1] += sign
    return arguments, len(text)
