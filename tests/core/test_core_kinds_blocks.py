"""Buddy, partition, compact and counted fixed pools, call by call: the blocks they leave, worked out by hand.

Behaviour tables are as in tests/helpers/behaviour.py.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from behaviour import play
from c_programs import SANITIZED, UNCHECKED, compile_c
from pool_recipes import KINDS_OF_HANDLES, MMEM, buddy, compact, partitions, random_trace

from heapwright._generate.emit import generated_files
from heapwright._recipes.policy import policy
from heapwright._recipes.recipe import Recipe
from heapwright._replay.pictures import metadata
from heapwright._replay.replay import replay

GROUPS = """
    malloc a 10     |0:64:a|
    malloc b 130    |0:64:a|64:192:b|
    malloc c 64     |0:64:a|64:192:b|256:64:c|
    malloc d 65     |0:64:a|64:192:b|256:64:c|320:128:d|
    free b          |0:64:a|64:192:.|256:64:c|320:128:d|
    malloc e 100    |0:64:a|64:128:e|192:64:.|256:64:c|320:128:d|
    free a          |0:64:.|64:128:e|192:64:.|256:64:c|320:128:d|
    malloc f 64     |0:64:f|64:128:e|192:64:.|256:64:c|320:128:d|
    free c          |0:64:f|64:128:e|192:128:.|320:128:d|
    free f          |0:64:.|64:128:e|192:128:.|320:128:d|
    free e          |0:320:.|320:128:d|
    malloc g 65     |0:128:g|128:192:.|320:128:d|
    realloc g 150   |0:192:g|192:128:.|320:128:d|
    realloc g 400   refused |0:192:g|192:128:.|320:128:d|
    realloc d 192   |0:192:g|192:128:.|320:192:d|
    realloc d 193   refused |0:192:g|192:128:.|320:192:d|
    realloc d 1     |0:192:g|192:128:.|320:64:d|
    realloc g 64    |0:64:g|64:256:.|320:64:d|
    free d          |0:64:g|
    malloc h 448    |0:64:g|64:448:h|
    malloc i 1      refused |0:64:g|64:448:h|
"""
"""Eight partitions of 64 bytes. f takes the hole that a left, the first by address, not the one at 192; freeing e joins
what lies on both sides; freeing d gives it and the hole ahead of it back to the top."""


CLASSES = """
    malloc a 0      |-2120:8:a|
    malloc b 8      refused |-2120:8:a|
    malloc c 9      |-2120:8:a|-2112:12:c|
    malloc d 13     |-2120:8:a|-2112:12:c|-2100:20:d|
    malloc e 21     |-2120:8:a|-2112:12:c|-2100:20:d|-2080:40:e|
    malloc f 40     |-2120:8:a|-2112:12:c|-2100:20:d|-2080:40:e|-2040:40:f|
    malloc g 41     |-2120:8:a|-2112:12:c|-2100:20:d|-2080:40:e|-2040:40:f|-2000:2000:g|
    malloc h 2001   refused |-2120:8:a|-2112:12:c|-2100:20:d|-2080:40:e|-2040:40:f|-2000:2000:g|
    free d          |-2120:8:a|-2112:12:c|-2100:20:.|-2080:40:e|-2040:40:f|-2000:2000:g|
    malloc i 12     refused |-2120:8:a|-2112:12:c|-2100:20:.|-2080:40:e|-2040:40:f|-2000:2000:g|
    free c          |-2120:8:a|-2112:12:.|-2100:20:.|-2080:40:e|-2040:40:f|-2000:2000:g|
    malloc i 12     |-2120:8:a|-2112:12:i|-2100:20:.|-2080:40:e|-2040:40:f|-2000:2000:g|
    free f          |-2120:8:a|-2112:12:i|-2100:20:.|-2080:40:e|-2040:40:.|-2000:2000:g|
    free e          |-2120:8:a|-2112:12:i|-2100:20:.|-2080:40:.|-2040:40:.|-2000:2000:g|
    free a          |-2120:8:.|-2112:12:i|-2100:20:.|-2080:40:.|-2040:40:.|-2000:2000:g|
    malloc j 30     |-2120:8:.|-2112:12:i|-2100:20:.|-2080:40:j|-2040:40:.|-2000:2000:g|
    realloc j 40    |-2120:8:.|-2112:12:i|-2100:20:.|-2080:40:j|-2040:40:.|-2000:2000:g|
    realloc j 41    refused |-2120:8:.|-2112:12:i|-2100:20:.|-2080:40:j|-2040:40:.|-2000:2000:g|
    free g          |-2120:8:.|-2112:12:i|-2100:20:.|-2080:40:j|-2040:40:.|-2000:2000:.|
    realloc j 41    |-2120:8:.|-2112:12:i|-2100:20:.|-2080:40:.|-2040:40:.|-2000:2000:j|
    malloc k 16     |-2120:8:.|-2112:12:i|-2100:20:k|-2080:40:.|-2040:40:.|-2000:2000:j|
"""
"""Steps of 8 bytes map the sizes, and of 32 bytes the region: classes end within both, three in its first step."""


@pytest.mark.parametrize("checks", ["none", "frees", "neighbours"])
def test_counted_classes_that_maps_find(script: Path, tmp_path: Path, checks: str) -> None:
    pool = {"kind": "fixed", "sizes": [8, 12, 20, 40, 2000], "counts": [1, 1, 1, 2, 1]}
    play(script, tmp_path, Recipe.from_dict({"align": 4, "checks": checks, "pool": [pool]}), CLASSES, room=0)


def test_groups_of_partitions(script: Path, tmp_path: Path) -> None:
    play(script, tmp_path, partitions(descriptor_bytes=16), GROUPS, room=8 * (64 + 16))


def test_counted_partitions_do_the_same_in_a_region(script: Path, tmp_path: Path) -> None:
    """Offsets count from the end of the region, whose data are its last 512 bytes; what lies behind is not touched."""
    table = GROUPS
    for offset in sorted(range(0, 512, 64), reverse=True):
        table = table.replace(f"|{offset}:", f"|{offset - 512}:")
    play(script, tmp_path, partitions(count=8), table, room=100)


def test_orders_and_fits_of_free_groups(script: Path, tmp_path: Path) -> None:
    """Holes of 3, 1 and 2 partitions, freed in this order; a request for one partition takes each order's own."""
    holes = """
        malloc a 192    |0:192:a|
        malloc b 1      |0:192:a|192:64:b|
        malloc c 64     |0:192:a|192:64:b|256:64:c|
        malloc d 1      |0:192:a|192:64:b|256:64:c|320:64:d|
        malloc e 128    |0:192:a|192:64:b|256:64:c|320:64:d|384:128:e|
        malloc f 1      |0:192:a|192:64:b|256:64:c|320:64:d|384:128:e|512:64:f|
        free a          |0:192:.|192:64:b|256:64:c|320:64:d|384:128:e|512:64:f|
        free c          |0:192:.|192:64:b|256:64:.|320:64:d|384:128:e|512:64:f|
        free e          |0:192:.|192:64:b|256:64:.|320:64:d|384:128:.|512:64:f|
    """
    cases = {
        ("address", "first", 64): "|0:64:x|64:128:.|192:64:b|256:64:.|320:64:d|384:128:.|512:64:f|",
        ("lifo", "first", 64): "|0:192:.|192:64:b|256:64:.|320:64:d|384:64:x|448:64:.|512:64:f|",
        ("size", "first", 64): "|0:192:.|192:64:b|256:64:x|320:64:d|384:128:.|512:64:f|",
        ("address", "best", 64): "|0:192:.|192:64:b|256:64:x|320:64:d|384:128:.|512:64:f|",
        ("address", "best", 65): "|0:192:.|192:64:b|256:64:.|320:64:d|384:128:x|512:64:f|",
        ("address", "first", 65): "|0:128:x|128:64:.|192:64:b|256:64:.|320:64:d|384:128:.|512:64:f|",
    }
    for (order, fits, size), drawn in cases.items():
        table = f"{holes}    malloc x {size}     {drawn}\n"
        play(script, tmp_path, partitions(order=order, fit=fits), table, room=2000)


LISTED = """
    malloc a 192    |0:192:a|
    malloc b 1      |0:192:a|192:64:b|
    malloc c 64     |0:192:a|192:64:b|256:64:c|
    malloc d 1      |0:192:a|192:64:b|256:64:c|320:64:d|
    malloc e 256    |0:192:a|192:64:b|256:64:c|320:64:d|384:256:e|
    malloc f 1      |0:192:a|192:64:b|256:64:c|320:64:d|384:256:e|640:64:f|
    free e          |0:192:a|192:64:b|256:64:c|320:64:d|384:256:.|640:64:f|
    free a          |0:192:.|192:64:b|256:64:c|320:64:d|384:256:.|640:64:f|
    free c          |0:192:.|192:64:b|256:64:.|320:64:d|384:256:.|640:64:f|
    malloc g 64     |0:192:.|192:64:b|256:64:g|320:64:d|384:256:.|640:64:f|
"""
"""Holes of 4, 3 and 1 partitions, freed in this order; g takes the one that fits, in every order of lists by number."""


def test_lists_of_groups_by_their_partitions(script: Path, tmp_path: Path) -> None:
    """With two lists those of 3 and 4 partitions share the last: its order and fit say which h gets. With four each
    has its own, and what is left of a group moves to the list of its number."""
    first = "|0:128:h|128:64:.|192:64:b|256:64:g|320:64:d|384:256:.|640:64:f|"
    second = "|0:192:.|192:64:b|256:64:g|320:64:d|384:128:h|512:128:.|640:64:f|"
    remaining = "|0:128:h|128:64:i|192:64:b|256:64:g|320:64:d|384:256:.|640:64:f|"
    merged = "|0:320:.|320:64:d|384:256:.|640:64:f|"
    cases: list[tuple[dict[str, Any], str]] = [
        ({"lists": 2}, f"malloc h 128 {first}"),
        ({"lists": 2, "order": "lifo"}, f"malloc h 128 {first}"),
        ({"lists": 2, "order": "size"}, f"malloc h 128 {first}"),
        ({"lists": 2}, f"malloc h 193 {second.replace('384:128:h|512:128:.', '384:256:h')}"),
        ({"lists": 4, "order": "lifo"}, f"malloc h 128 {first}\n malloc i 1 {remaining}"),
        ({"lists": 4}, f"free g {'|0:192:.|192:64:b|256:64:.|320:64:d|384:256:.|640:64:f|'}\n free b {merged}"),
    ]
    for keys, rest in cases:
        play(script, tmp_path, partitions(**keys), LISTED + f"    {rest}\n", room=2000)


def test_groups_that_never_merge(script: Path, tmp_path: Path) -> None:
    table = """
        malloc a 128    |0:128:a|
        malloc b 64     |0:128:a|128:64:b|
        free a          |0:128:.|128:64:b|
        free b          |0:128:.|128:64:.|
        malloc c 192    |0:128:.|128:64:.|192:192:c|
        malloc d 64     |0:64:d|64:64:.|128:64:.|192:192:c|
    """
    play(script, tmp_path, partitions(coalesce="never"), table, room=4 * 400)


def test_buddies(script: Path, tmp_path: Path) -> None:
    """16-byte blocks hold 12 bytes. b needs 32 and goes to the next multiple of 32; the gap is a free block of 16,
    which c takes. Freed buddies join; what ends at the top goes back to it."""
    table = """
        malloc a 12     |0:16:a|
        malloc b 13     |0:16:a|16:16:.|32:32:b|
        malloc c 1      |0:16:a|16:16:c|32:32:b|
        malloc d 100    |0:16:a|16:16:c|32:32:b|64:64:.|128:128:d|
        malloc e 20     |0:16:a|16:16:c|32:32:b|64:32:e|96:32:.|128:128:d|
        free a          |0:16:.|16:16:c|32:32:b|64:32:e|96:32:.|128:128:d|
        free b          |0:16:.|16:16:c|32:32:.|64:32:e|96:32:.|128:128:d|
        malloc f 10     |0:16:f|16:16:c|32:32:.|64:32:e|96:32:.|128:128:d|
        free c          |0:16:f|16:16:.|32:32:.|64:32:e|96:32:.|128:128:d|
        free f          |0:64:.|64:32:e|96:32:.|128:128:d|
        free e          |0:128:.|128:128:d|
        malloc g 28     |0:32:g|32:32:.|64:64:.|128:128:d|
        realloc g 60    |0:64:g|64:64:.|128:128:d|
        realloc g 124   |0:128:g|128:128:d|
        realloc g 12    |0:16:g|16:16:.|32:32:.|64:64:.|128:128:d|
        free d          |0:16:g|
        realloc g 250   |0:256:g|
        realloc g 253   refused |0:256:g|
        malloc h 300    refused |0:256:g|
        free g          |
    """
    play(script, tmp_path, buddy(), table, room=500)


def test_the_last_freed_buddy_is_taken_first_and_halves_go_low_first(script: Path, tmp_path: Path) -> None:
    table = """
        malloc a 60     |0:64:a|
        malloc b 60     |0:64:a|64:64:b|
        malloc c 60     |0:64:a|64:64:b|128:64:c|
        malloc d 60     |0:64:a|64:64:b|128:64:c|192:64:d|
        malloc e 60     |0:64:a|64:64:b|128:64:c|192:64:d|256:64:e|
        free d          |0:64:a|64:64:b|128:64:c|192:64:.|256:64:e|
        free a          |0:64:.|64:64:b|128:64:c|192:64:.|256:64:e|
        malloc f 12     |0:16:f|16:16:.|32:32:.|64:64:b|128:64:c|192:64:.|256:64:e|
        malloc g 28     |0:16:f|16:16:.|32:32:g|64:64:b|128:64:c|192:64:.|256:64:e|
        free c          |0:16:f|16:16:.|32:32:g|64:64:b|128:128:.|256:64:e|
        malloc h 124    |0:16:f|16:16:.|32:32:g|64:64:b|128:128:h|256:64:e|
    """
    play(script, tmp_path, buddy(), table, room=500)


def test_buddies_of_the_largest_order_stay_apart(script: Path, tmp_path: Path) -> None:
    table = """
        malloc a 28     |0:32:a|
        malloc b 28     |0:32:a|32:32:b|
        malloc c 8      |0:32:a|32:32:b|64:16:c|
        malloc d 29     refused |0:32:a|32:32:b|64:16:c|
        free a          |0:32:.|32:32:b|64:16:c|
        free b          |0:32:.|32:32:.|64:16:c|
        free c          |
    """
    play(script, tmp_path, buddy(max_block=32), table, room=500)


EAGER = """
    malloc a 10     |0:10:a|
    malloc b 7      |0:10:a|10:7:b|
    malloc c 20     |0:10:a|10:7:b|17:20:c|
    free b          |0:10:a|10:20:c|
    malloc d 70     |0:10:a|10:20:c|30:70:d|
    malloc e 1      refused |0:10:a|10:20:c|30:70:d|
    realloc a 4     |0:4:a|4:20:c|24:70:d|
    malloc e 6      |0:4:a|4:20:c|24:70:d|94:6:e|
    realloc c 21    refused |0:4:a|4:20:c|24:70:d|94:6:e|
    free e          |0:4:a|4:20:c|24:70:d|
    realloc c 26    |0:4:a|4:26:c|30:70:d|
    free d          |0:4:a|4:26:c|
    free a          |0:26:c|
    free c          |
"""


LAZY = """
    malloc a 8      |0:12:a|
    malloc b 20     |0:12:a|12:24:b|
    malloc c 4      |0:12:a|12:24:b|36:8:c|
    free a          |0:12:.|12:24:b|36:8:c|
    malloc d 50     |0:24:b|24:8:c|32:56:d|
    free c          |0:24:b|24:8:.|32:56:d|
    malloc e 4      |0:24:b|24:56:d|80:8:e|
    free b          |0:24:.|24:56:d|80:8:e|
    malloc f 12     |0:56:d|56:8:e|64:16:f|
    malloc g 20     refused |0:56:d|56:8:e|64:16:f|
    realloc d 20    |0:24:d|24:32:.|56:8:e|64:16:f|
    realloc e 8     |0:24:d|24:32:.|56:12:e|68:16:f|
    free f          |0:24:d|24:32:.|56:12:e|
    malloc g 40     |0:24:d|24:12:e|36:44:g|
    free e          |0:24:d|24:12:.|36:44:g|
    free g          |0:24:d|24:12:.|
    free d          |0:24:.|24:12:.|
    malloc h 96     |0:100:h|
"""
"""4 bytes of header. d finds no room below the high-water mark, so what is live slides down first; so do e, f and g.
What d releases becomes a hole at once, and e grows by moving f."""


def test_an_eager_heap_closes_holes_at_once(script: Path, tmp_path: Path) -> None:
    play(script, tmp_path, compact(**MMEM), EAGER, room=100)


def test_a_lazy_heap_slides_before_it_grows(script: Path, tmp_path: Path) -> None:
    play(script, tmp_path, compact(), LAZY, room=100)


@pytest.mark.parametrize("keys", KINDS_OF_HANDLES[::2], ids=str)
def test_generated_code_leaves_the_same_metadata(tmp_path: Path, keys: dict[str, Any]) -> None:
    heap = compact(**keys)
    trace = random_trace(6, calls=800)
    arena = int(replay(trace, heap)["footprint_bytes"] or 0) // 4 * 4
    content, marks = metadata(trace, heap, arena)
    slots, calls = trace.calls.slots, trace.calls.records()
    (tmp_path / "calls").write_bytes(np.array([len(trace), slots], np.uint32).tobytes() + calls.tobytes())
    for name, text in generated_files(heap).items():
        (tmp_path / name).write_text(text)
    words = heap.pools[0].reference_words
    flags = ["-std=gnu11", f"-DHANDLE_WORDS={words}", f"-I{tmp_path}", UNCHECKED, *SANITIZED]
    program = compile_c(tmp_path / "driver", "generated_driver.c", tmp_path / "app_heap.c", flags=flags)
    done = subprocess.run([program, tmp_path / "calls", str(arena), str(arena)], capture_output=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.split()[3:] == [b"0", b"0"]  # neither invariants nor payloads broken
    result = np.frombuffer(done.stdout, np.uint8)[: len(content)]
    assert marks.sum() >= policy(heap)["control"]
    assert (result[marks] == content[marks]).all()


@pytest.mark.parametrize(
    "heap", [partitions(), partitions(count=300), buddy(), compact(), compact(**MMEM)], ids=lambda heap: heap.summary()
)
def test_generated_code_has_no_trace_of_other_kinds(heap: Recipe) -> None:
    text = generated_files(heap)["app_heap.c"]
    others = {"buddy", "partition", "compact", "quick_", "general", "fixed_"} - {heap.pools[0].kind}
    functions = " ".join(line for line in text.splitlines() if line.startswith("static inline"))
    assert not [word for word in others if word in functions]
