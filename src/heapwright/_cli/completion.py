"""Shell completion: heaps, platforms, metrics and picks."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from heapwright._replay.metrics import METRICS

_COMPARED = ("<=", ">=", "==", "<", ">")


def heaps(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The zoo's names, and files; behind STUDY: the picks and the zoo."""
    from heapwright import _api as api
    from heapwright._studies.recommendations import PICKS

    study, colon, name = begun.rpartition(":")
    names = [item.name for item in api.zoo() if item.name]
    if colon and Path(study).is_file():
        return [CompletionItem(f"{study}:{item}") for item in (*PICKS, *names) if item.startswith(name)]
    return [CompletionItem(begun, type="file"), *_beginning(begun, names)]


def platforms(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The platforms of generated heaps."""
    from heapwright import _api as api

    return _beginning(begun, [item.name for item in api.platforms()])


def metrics(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The keys of metrics, in a list of them the last one."""
    before, comma, last = begun.rpartition(",")
    taken = before.split(",")
    results = [key for key in METRICS if key.startswith(last) and key not in taken]
    return [CompletionItem(f"{before}{comma}{key}", help=METRICS[key].meaning) for key in results]


def conditions(ctx: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """The key of a condition, then how it compares."""
    key, blank, _rest = begun.partition(" ")
    if blank:
        return [CompletionItem(f"{key} {item} ") for item in _COMPARED if f"{key} {item}".startswith(begun.rstrip())]
    return _beginning(begun, [*METRICS, "reserve_bytes"])


def _beginning(begun: str, words: list[str]) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.startswith(begun)]
