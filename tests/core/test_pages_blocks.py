"""Pages of objects without headers, call by call: the blocks they leave, worked out by hand; see `behaviour.py`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from behaviour import play
from c_programs import SANITIZED, UNCHECKED, compile_c
from metric_values import known
from pool_recipes import random_trace, recipe

from heapwright._generate.emit import generated_files
from heapwright._replay.replay import replay
from heapwright._replay.snapshots import filming

PAGES = {"kind": "pages", "page_bytes": 512, "sizes": [200, 240]}


def test_pages_of_two_objects(script: Path, tmp_path: Path) -> None:
    """Two pages, each with 496 bytes for objects. The page that a and b left serves g, of the other class; c was freed
    from a full page, which is first in its list then; pages at the limit go back, the lower one first."""
    table = """
        malloc a 200    |512:200:a|712:200:.|
        malloc b 150    |512:200:a|712:200:b|
        malloc c 201    |0:240:c|240:240:.|512:200:a|712:200:b|
        malloc d 1      refused |0:240:c|240:240:.|512:200:a|712:200:b|
        malloc e 240    |0:240:c|240:240:e|512:200:a|712:200:b|
        malloc f 241    refused |0:240:c|240:240:e|512:200:a|712:200:b|
        free b          |0:240:c|240:240:e|512:200:a|712:200:.|
        free a          |0:240:c|240:240:e|512:496:.|
        malloc g 240    |0:240:c|240:240:e|512:240:g|752:240:.|
        free c          |0:240:.|240:240:e|512:240:g|752:240:.|
        malloc h 201    |0:240:h|240:240:e|512:240:g|752:240:.|
        realloc h 100   |0:240:h|240:240:e|512:240:g|752:240:.|
        realloc h 241   refused |0:240:h|240:240:e|512:240:g|752:240:.|
        free e          |0:240:h|240:240:.|512:240:g|752:240:.|
        free h          |512:240:g|752:240:.|
        free g          |
    """
    play(script, tmp_path, recipe(PAGES, align=8), table, room=1024)


def test_what_pages_give_back_others_grow_over(script: Path, tmp_path: Path) -> None:
    """A block of the general pool reaches to where a's page was; what it covered once it does not give to pages."""
    table = """
        malloc a 200    |516:200:a|716:200:.|
        malloc b 508    |0:512:b|516:200:a|716:200:.|
        malloc c 240    refused |0:512:b|516:200:a|716:200:.|
        free a          |0:512:b|
        realloc b 1000  |0:1008:b|
        free b          |
        malloc e 200    |0:208:e|
    """
    play(script, tmp_path, recipe(PAGES, {"kind": "general"}, align=8), table, room=1028)


def test_runs_of_empty_pages(script: Path, tmp_path: Path) -> None:
    """Four pages of one object. b and c make a run, of which e takes the page nearest to the arena's end; once d is
    free, c's page goes back with its own."""
    sizes = {"kind": "pages", "page_bytes": 512, "sizes": [480]}
    table = """
        malloc a 480    |1540:480:a|
        malloc b 480    |1028:480:b|1540:480:a|
        malloc c 480    |516:480:c|1028:480:b|1540:480:a|
        malloc d 480    |4:480:d|516:480:c|1028:480:b|1540:480:a|
        free c          |4:480:d|516:500:.|1028:480:b|1540:480:a|
        free b          |4:480:d|516:500:.|1028:500:.|1540:480:a|
        malloc e 480    |4:480:d|516:500:.|1028:480:e|1540:480:a|
        free a          |4:480:d|516:500:.|1028:480:e|1540:500:.|
        free d          |1028:480:e|1540:500:.|
        malloc f 1      |1028:480:e|1540:480:f|
        free f          |1028:480:e|1540:500:.|
        free e          |
    """
    play(script, tmp_path, recipe(sizes, align=8), table, room=2052)


def test_a_page_joins_the_runs_on_both_sides(script: Path, tmp_path: Path) -> None:
    sizes = {"kind": "pages", "page_bytes": 512, "sizes": [480]}
    table = """
        malloc a 480    |1540:480:a|
        malloc b 480    |1028:480:b|1540:480:a|
        malloc c 480    |516:480:c|1028:480:b|1540:480:a|
        malloc d 480    |4:480:d|516:480:c|1028:480:b|1540:480:a|
        free a          |4:480:d|516:480:c|1028:480:b|1540:500:.|
        free c          |4:480:d|516:500:.|1028:480:b|1540:500:.|
        free b          |4:480:d|516:500:.|1028:500:.|1540:500:.|
        malloc e 480    |4:480:d|516:500:.|1028:500:.|1540:480:e|
        free d          |1540:480:e|
        free e          |
    """
    play(script, tmp_path, recipe(sizes, align=8), table, room=2052)


GENERAL = {"kind": "general", "bins": "exact", "fit": "best"}

GENERATED: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = [
    ("none", {"page_bytes": 1024, "sizes": [24, 40, 200]}, [GENERAL]),
    ("neighbours", {"page_bytes": 2048, "up_to": 1000, "spacing": 40}, []),
    ("full", {"page_bytes": 512, "up_to": 64}, [GENERAL]),
]


@pytest.mark.parametrize(("checks", "keys", "below"), GENERATED, ids=lambda value: str(value)[:10])
def test_generated_code_does_what_a_replay_does_call_by_call(
    tmp_path: Path, checks: str, keys: dict[str, Any], below: list[dict[str, Any]]
) -> None:
    """In an arena that holds all, and in one in which requests are refused."""
    heap = recipe({"kind": "pages", **keys}, *below, align=8, checks=checks)
    trace = random_trace(7, calls=600)
    slots, calls = trace.calls.slots, trace.calls.records()
    (tmp_path / "calls").write_bytes(np.array([len(trace), slots], np.uint32).tobytes() + calls.tobytes())
    for name, text in generated_files(heap).items():
        (tmp_path / name).write_text(text)
    flags = ["-std=gnu11", f"-I{tmp_path}", UNCHECKED, "-DAPP_ASSERT(c)=((c) ? (void)0 : abort())", *SANITIZED]
    flags += ["-include", "stdlib.h"]
    program = compile_c(tmp_path / "driver", "generated_addresses.c", tmp_path / "app_heap.c", flags=flags)
    footprint = int(known(replay(trace, heap)["footprint_bytes"]))
    for arena in (footprint, footprint * 3 // 4):
        done = subprocess.run([program, tmp_path / "calls", str(arena)], capture_output=True)
        assert done.returncode == 0, done.stderr
        with filming(trace, heap, arena) as film:
            for call, result in enumerate(np.frombuffer(done.stdout, np.uint32).tolist()):
                film.go_on(call)
                assert int(film.alive()["at"].sum()) % 2**32 == result, call
