"""Blocks that devices send: does the heap still fit what they do?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from heapwright._api.arguments import AnyHeap, PathLike, recipe_of
from heapwright._recipes.recipe import Recipe
from heapwright._replay.usage import FieldBlock, Usage, read_blocks, usage_of
from heapwright._studies.field import judge, variant_of
from heapwright._studies.gate import Checked, Rule, judged_field
from heapwright._support.errors import HeapwrightError, ParameterError
from heapwright._traces.trace import Trace


def check_field(
    files: Sequence[PathLike], heaps: Sequence[AnyHeap], recordings: Sequence[Trace], rules: Sequence[Rule]
) -> list[Checked]:
    """The verdict on each block in the files.

    Args:
        files: raw blocks, or logs with their hexadecimal digits.
        heaps: of the devices.
        recordings: that the heaps were tailored to; without any the block or the heap's study says what they used.
        rules: conditions that fail the check (`judged_field`).

    Raises HeapwrightError for a file without a block, and a block of another heap.
    """
    known = {_name(heap): (heap, recipe_of(heap)) for heap in heaps}
    results = []
    for file in map(Path, files):
        blocks = read_blocks(file.read_bytes())
        if not blocks:
            raise HeapwrightError(
                f"{file}: no block of a heap: 116 bytes that begin with HWF1, raw or as hexadecimal digits, with the "
                "checksum that belongs to them"
            )
        for block in blocks:
            name, heap, variant = _heap_of(file, block, known)
            recorded = _recorded(block, heap, variant, recordings)
            place = f"{file}:{block.line}" if len(blocks) > 1 and block.line else str(file)
            results.append(judged_field(place, name, judge(block, recorded), rules))
    return results


def _name(heap: AnyHeap) -> str:
    return str(getattr(heap, "name", None) or getattr(heap, "id", None) or heap)


def _heap_of(file: Path, block: FieldBlock, known: dict[str, tuple[AnyHeap, Recipe]]) -> tuple[str, AnyHeap, Recipe]:
    for name, (heap, recipe) in known.items():
        if variant := variant_of(recipe, block):
            return name, heap, variant
    raise ParameterError(
        f"{file}: the block is of the recipe {block.recipe}..., not of {' or '.join(known)}", parameter="heap"
    )


def _recorded(block: FieldBlock, heap: AnyHeap, variant: Recipe, recordings: Sequence[Trace]) -> Usage | None:
    """What the heap was used for in the recordings that it was tailored to; None if that is not known."""
    if recordings:
        return usage_of(recordings, variant)
    return block.recorded or _of_study(heap, variant)


def _of_study(heap: AnyHeap, variant: Recipe) -> Usage | None:
    """The same on the traces of the study that names the heap; None without a study, or if they are not there."""
    from heapwright._heaps.names import parse
    from heapwright._studies.analysis import Analysis
    from heapwright._studies.originals import original

    name = parse(os.fspath(heap)) if isinstance(heap, str | os.PathLike) else None
    if name is None or name.kind != "study":
        return None
    with Analysis.open(Path(name.first)) as study:
        try:
            return usage_of([original(study, info, (), repair=True) for info in study.traces()], variant)
        except HeapwrightError:
            return None
