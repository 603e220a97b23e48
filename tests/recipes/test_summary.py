"""A pool in a few words: every key that differs from its default is printed, and nothing else."""

from __future__ import annotations

from typing import Any

from case_tables import each

from heapwright._recipes.model import REQUIRED
from heapwright._recipes.pools import KINDS, Buddy, Compact, Fixed, General, Partition, Pool, Quick

GENERAL = "general double/lifo first-fit, split always, coalesce immediate"


@each(
    ("pool", "words"),
    [
        (Quick(sizes=(16, 1476)), "quick 16,1476"),
        (Quick(up_to=512, limit_blocks=4, flush="over-limit"), "quick up to 512 limit 4 blocks flush over-limit"),
        (Quick(up_to=64, lists_per_octave=8, flush="idle"), "quick up to 64 8 an octave flush idle each 0.03125"),
        (Quick(up_to=64, flush="idle", release_most=4), "quick up to 64 flush idle each 0.03125 4 at a time"),
        (Quick(up_to=64, flush="idle", refill=8), "quick up to 64 flush idle each 0.03125 up to 8 cut at a time"),
        (Quick(up_to=64, flush="idle", release_most=0), "quick up to 64 flush idle each 0.03125 all at once"),
        (Quick(up_to=64, limit_blocks=9, flush_from=501), "quick up to 64 limit 9 blocks flush for 501 B"),
        (Quick(up_to=64, flush="before-growing"), "quick up to 64 flush before-growing"),
        (Quick(up_to=128, keep="apart"), "quick up to 128 kept apart"),
        (Quick(sizes=tuple(range(8, 80, 8))), "quick 8,16,24,32,40,48,56,64,72"),
        (Quick(sizes=tuple(range(8, 88, 8))), "quick 8,16,24,32,...,80 (10 sizes)"),
        (Fixed(sizes=(32, 64)), "fixed 32,64 growing freelist"),
        (
            Fixed(sizes=(32,), counts=(7,), find="first-fit", fall_through=True, header=8),
            "fixed 32 counts 7 first-fit, header 8, falling through",
        ),
        (Fixed(sizes=(32,), page=4096, max_size=30), "fixed 32 growing by pages of 4096 freelist for 0 to 30 B"),
        (Buddy(), "buddy from 16 B"),
        (Buddy(min_block=32, max_block=512, header=2, region=4096), "buddy from 32 B to 512 B, header 2, region 4096"),
        (Partition(), "partitions of 512 B address/first-fit, growing"),
        (Partition(lists=9), "partitions of 512 B address/first-fit, growing, 9 lists"),
        (
            Partition(size=128, count=9, order="lifo", fit="best", descriptor_bytes=16, coalesce="never", min_size=65),
            "partitions of 128 B lifo/best-fit, count 9, descriptors of 16 B, coalesce never from 65 B",
        ),
        (Compact(), "compact lazy"),
        (
            Compact(when="eager", header=8),
            "compact eager, header 8",
        ),
    ],
)
def test_other_pools(pool: Pool, words: str) -> None:
    assert pool.summary() == words


@each(
    ("keys", "more"),
    [
        ({}, ""),
        ({"victim_up_to": 68}, ", victim 68"),
        ({"close_bins": 2}, ", close bins 2"),
        ({"boundary_tags": False}, ", no tags"),
        ({"tag_in": "header"}, ", tags in headers"),
        ({"links_in": "header"}, ", links in headers"),
        ({"search_from": "freed"}, ", search from freed"),
        ({"search_most": 3}, ", search at most 3"),
        ({"remainder": "filed"}, ", remainders filed"),
        ({"merged": "in-place"}, ", merged in place"),
        ({"merged": "at-next"}, ", merged at next"),
        ({"merge_until": "enough"}, ", merge until enough"),
        ({"top": "bump"}, ", top bump"),
        ({"grow_least": 64}, ", grow at least 64 B"),
        ({"resize": "move"}, ", resize move"),
        ({"resize": "trim"}, ", resize trim"),
        ({"resize": "smaller-side"}, ", resize smaller-side"),
        ({"large_order": "size"}, ", large bins size"),
        ({"unsorted": True}, ", unsorted queue"),
        ({"most_bins": 9}, ", at most 9 bins"),
        ({"bin_by": "payload"}, ", bins by payload"),
        ({"round_to": "power-of-two"}, ", powers of two"),
        ({"round_to": "bin"}, ", rounded to bin"),
        ({"header": 8}, ", header 8"),
        ({"trailer": 4}, ", trailer 4"),
        ({"min_block": 32}, ", min block 32"),
        ({"max_block": 1024}, ", max block 1024"),
        ({"unit": 16}, ", unit 16"),
        ({"region": 2048}, ", region 2048"),
        ({"min_size": 10, "max_size": 20}, " for 10 to 20 B"),
        ({"min_size": 10}, " from 10 B"),
    ],
)
def test_a_general_pool_tells_what_it_adds(keys: dict[str, Any], more: str) -> None:
    assert General(**keys).summary() == GENERAL + more


@each(
    ("keys", "words"),
    [
        ({"split": 64}, "general double/lifo first-fit, split from 64 B, coalesce immediate"),
        ({"free_list": "implicit"}, "general implicit first-fit, split always, coalesce immediate"),
        ({"free_list": "tree", "fit": "best"}, "general tree best-fit, split always, coalesce immediate"),
        ({"free_list": "single", "order": "fifo"}, "general single/fifo first-fit, split always, coalesce immediate"),
        ({"bins": "exact", "fit": "best"}, "general exact bins best-fit, split always, coalesce immediate"),
        (
            {"bins": "power-of-two", "order": "size"},
            "general power-of-two bins double/size first-fit, split always, coalesce immediate",
        ),
        ({"bins": "two-level"}, "general two-level good-fit, split always, coalesce immediate"),
        (
            {"bins": "lea", "linear_up_to": 512, "bins_per_octave": 8},
            "general lea (linear to 512) (8 an octave) first-fit, split always, coalesce immediate",
        ),
        (
            {"fit": "best", "search_percent": 10, "split": 64, "split_from": "tail", "coalesce_from": 96},
            "general double/lifo best-fit 10%, split from 64 B off the tail, coalesce immediate from 96 B",
        ),
        (
            {"fit": "worst", "split": "never", "coalesce": "deferred"},
            "general double/lifo worst-fit, split never, coalesce deferred",
        ),
    ],
)
def test_a_general_pool_begins_with_how_it_searches(keys: dict[str, Any], words: str) -> None:
    assert General(**keys).summary() == words


@each("kind", KINDS)
def test_defaults_that_are_written_out_say_no_more(kind: str) -> None:
    defaults = {name: key.get_default() for name, key in KINDS[kind].model_fields.items()}
    needed = {name: [8] for name, default in defaults.items() if default is REQUIRED}
    output, plain = (KINDS[kind].model_validate(keys) for keys in (defaults | needed, needed))
    assert output == plain and output.summary() == plain.summary()
