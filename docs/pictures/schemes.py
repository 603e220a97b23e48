"""Pictures of how parts go together; names, numbers and files in them are those of the code."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import heapwright as hw
from pictures.drawing import LINE, Picture
from pictures.plot import Plot, Span
from pictures.recordings import PACKETS, broker


@cache
def _space() -> list[hw.Recipe]:
    """The default space for the broker."""
    return list(hw.Space.default([broker()]).recipes())


def flow() -> Picture:
    """From a trace and a recipe to metrics, and from many of these to what ships."""
    trace, name = broker(), "tlsf"
    recipe = hw.zoo(name).at_alignment(8)
    result = hw.replay(trace, recipe).metrics
    picture = Picture("A trace times a recipe gives metrics; of many the pick becomes C", 366)
    for x, words in ((16, "record, hooks, import"), (208, "zoo, spaces")):
        picture.text(x + 66, 28, words, "soft", anchor="middle")
        picture.arrow([(x + 66, 36), (x + 66, 58)])
    picture.card(16, 60, 146, "trace", ["an MQTT broker", f"{len(trace):,} calls", "", "", ""])
    plot = Plot(picture, Span(0, len(trace), 26, 152), Span(0, trace.peak_live_bytes, 178, 132))
    plot.ground([(int(at) + 1, int(trace.live_bytes[at])) for at in hw.sample_events(trace.live_bytes, 60)], "blue")
    picture.text(182, 132, "×", bold=True, anchor="middle")
    pool = recipe.pools[0]
    assert isinstance(pool, hw.pools.General)
    keys = [f'kind = "{pool.kind}"', f'bins = "{pool.bins}"', f'fit = "{pool.fit}"', f"align = {recipe.align}"]
    picture.card(202, 60, 146, "recipe", [name, *keys])
    picture.arrow([(352, 126), (376, 126)])
    values = [
        ("footprint", f"{result['footprint_bytes']:,}"),
        ("accesses", f"{result['accesses']:,}"),
        ("worst malloc", f"{result['accesses_malloc_max']:,}"),
        ("refused", f"{result['failed']:,}"),
    ]
    picture.card(378, 60, 146, "metrics", [""] * 5)
    for at, (words, value) in enumerate(values):
        picture.text(388, 101 + at * LINE, words, "soft")
        picture.text(514, 101 + at * LINE, value, anchor="end")
    picture.arrow([(451, 192), (451, 226)])
    picture.text(440, 214, "explore: many recipes", "soft", anchor="end")
    picture.card(378, 228, 146, "study", [f"{len(_space()):,} recipes", "their front"])
    picture.arrow([(374, 264), (352, 264)])
    picture.card(202, 228, 146, "pick", ["what to ship and", "to reserve"])
    picture.arrow([(198, 264), (166, 264)])
    picture.card(16, 228, 146, "C", ["for the firmware,", "with a test"])
    also = [
        "Also, of any heap: fit (its arena), stress (does it last?), attack,",
        "prove, measure, check (the gate), report (a page).",
    ]
    picture.lines(16, 332, also, "soft")
    return picture


# ---- a board -------------------------------------------------------------------------------------------------------


def _files(platform: str) -> tuple[list[str], list[str]]:
    """The files of C that record on a platform, and those of a heap for it."""
    with TemporaryDirectory() as folder:
        hooks = [path.name for path in hw.hooks(platform, Path(folder, "hooks"))]
        heap = [path.name for path in hw.generate("tlsf", Path(folder, "heap"), platform=platform)]
    return hooks, heap


def circle() -> Picture:
    """From a FreeRTOS board, whose hooks record its calls, and back to the board with its own allocator."""
    hooks, heap = _files("freertos")
    text = "From a board by hooks, import, explore and generate back to it"
    picture = Picture(text, 390)
    cards = (
        (16, 40, "your board", ["FreeRTOS, and", "the application"]),
        (372, 40, "its console", ["one line", "for each call"]),
        (372, 232, "app.parquet", ["the trace"]),
        (194, 232, "app.duckdb", ["the study"]),
        (16, 232, "heap/", [item for item in heap if item in ("app_freertos.c", "app_heap.c", "app_heap.h")]),
    )
    for x, y, title, lines in cards:
        picture.card(x, y, 152, title, lines)
    assert {"app_trace_freertos.c"} <= {*hooks} and len(cards[-1][3]) == 3
    picture.text(262, 32, "heapwright hooks freertos", anchor="middle")
    picture.text(270, 62, "app_trace_freertos.c", "soft", anchor="middle")
    picture.arrow([(172, 76), (370, 76)])
    picture.text(270, 96, "while it runs", "soft", anchor="middle")
    picture.arrow([(448, 116), (448, 230)])
    picture.text(438, 178, "heapwright import, or live", anchor="end")
    picture.arrow([(370, 258), (348, 258)])
    picture.arrow([(192, 258), (170, 258)])
    picture.line([(359, 258), (359, 328)], "pale", 1)
    picture.line([(181, 258), (181, 344)], "pale", 1)
    picture.text(366, 332, "heapwright explore")
    picture.lines(190, 360, ["heapwright generate", "app.duckdb:balanced --platform freertos"])
    picture.arrow([(60, 230), (60, 118)])
    picture.lines(72, 166, ["compile and link in", "place of heap_4.c"], "ink")
    return picture


def logs() -> Picture:
    """The formats of logs that become a trace."""
    try:
        hw.import_log(PACKETS, format="none")
    except hw.HeapwrightError as error:
        names = str(error).partition("valid: ")[2].split(", ")
    columns, pitch = 4, 32
    rows = -(-len(names) // columns)
    foot = 44 + rows * pitch
    picture = Picture("Every format of log becomes a trace by import", foot + 92)
    picture.text(16, 28, f"{len(names)} formats", bold=True)
    for at, name in enumerate(sorted(names)):
        x, y = 16 + at % columns * 129, 40 + at // columns * pitch
        picture.box(x, y, 121, 26, "wash", "pale", 6)
        picture.text(x + 60.5, y + 18, name, anchor="middle")
    picture.arrow([(270, foot + 2), (270, foot + 40)])
    picture.text(282, foot + 26, "heapwright import")
    picture.box(150, foot + 42, 240, 34, "blue", round=6)
    picture.text(270, foot + 64, "app.parquet, a trace", "white", anchor="middle")
    return picture


ENTRIES = {
    "freertos": "pvPortMalloc",
    "newlib": "_malloc_r",
    "zephyr": "malloc",
    "nuttx": "mm_malloc",
    "lwip": "app_lwip_malloc",
}
"""What is called in some platforms."""


def glue() -> Picture:
    """What platforms call, the lock that their glue takes, and the heap behind it."""
    picture = Picture("What platforms call, the lock their glue takes, one heap behind", 330)
    for x, words in ((16, "platform"), (104, "its call"), (244, "the glue's lock")):
        picture.text(x, 28, words, "soft")
    for at, (name, entry) in enumerate(ENTRIES.items()):
        with TemporaryDirectory() as folder:
            files = [path for path in hw.generate("tlsf", folder, platform=name) if path.stem == f"app_{name}"]
            assert any(re.search(rf"\b{entry}\(", path.read_text(encoding="utf-8")) for path in files), name
        y = 42 + at * 46
        picture.text(16, y + 23, name, bold=True)
        picture.box(104, y, 118, 36, "wash", "pale", 6)
        picture.text(163, y + 23, entry, anchor="middle")
        picture.arrow([(222, y + 18), (242, y + 18)])
        lock = hw.platforms(name).lock or "none"
        picture.box(244, y, 176, 36, "sand", round=6)
        picture.text(332, y + 23, lock, "black", anchor="middle")
        picture.arrow([(420, y + 18), (440, y + 18)])
    picture.box(442, 42, 82, 220, "blue", round=6)
    picture.lines(483, 148, ["app_heap:", "the recipe"], "white", anchor="middle")
    picture.text(16, 300, f"heapwright generate HEAP --platform NAME: one of {len(hw.platforms())}", "soft")
    return picture


def two_heaps() -> Picture:
    """Newlib with a malloc of the program's own, and with the platform's glue."""
    with TemporaryDirectory() as folder:
        hw.generate("all-round", folder, platform="newlib")
        glue = Path(folder, "app_newlib.c").read_text(encoding="utf-8")
    functions = re.findall(r"^(?:void|char).* \**(_[a-z]+_r)\(.*\)", glue, re.MULTILINE)
    assert {"_malloc_r", "_free_r", "_realloc_r"} <= {*functions}
    picture = Picture("Two heaps with malloc alone, one with the platform's glue", 336)
    for y, title in ((28, "A malloc of your own, and no more"), (196, "heapwright generate --platform newlib")):
        picture.text(16, y, title, bold=True)
        for down, words in ((14, "your code: malloc"), (62, "printf, strdup: _malloc_r")):
            picture.box(16, y + down, 204, 38, "wash", "pale", 6)
            picture.text(26, y + down + 24, words)
    for y, words, colour in ((42, "your heap", "blue"), (90, "newlib's heap, from _sbrk", "red")):
        picture.box(300, y, 224, 38, colour, round=6)
        picture.text(412, y + 24, words, "white", anchor="middle")
        picture.arrow([(222, y + 19), (298, y + 19)])
    picture.box(300, 210, 224, 86, "blue", round=6)
    picture.lines(412, 248, ["app_heap, behind", f"{len(functions)} functions of newlib"], "white", anchor="middle")
    for y in (229, 277):
        picture.arrow([(222, y), (298, y)])
    picture.text(16, 322, f"{functions[0]}, {', '.join(functions[1:4])} ...: all or nothing.", "soft")
    picture.text(16, 158, "A block of the one in the other's free: damage.", "soft")
    return picture


def caches() -> Picture:
    """Where a call of a thread finds its block with `threads = "cached"`."""
    recipe = hw.zoo("all-round")
    up_to, most = recipe.cache_up_to, recipe.cache_bytes
    picture = Picture("Caches of threads, below them the lock, the depot, the heap", 292)
    for at in range(3):
        x = 16 + at * 176
        picture.box(x, 14, 156, 36, "wash", "pale", 6)
        picture.text(x + 78, 38, f"thread {at + 1}", anchor="middle")
        picture.arrow([(x + 78, 52), (x + 78, 68)])
        picture.box(x, 70, 156, 58, "green", round=6)
        picture.lines(x + 78, 94, ["its cache: lists", f"up to {up_to:,} bytes"], "white", anchor="middle")
        picture.arrow([(x + 78, 130), (x + 78, 170)])
    picture.line([(16, 148), (524, 148)], "red", 2.5, "8 5")
    picture.text(182, 143, "the lock", "red", anchor="middle")
    picture.box(16, 172, 508, 34, "sand", round=6)
    picture.text(270, 194, "depot: what caches gave back, a batch at a time", "black", anchor="middle")
    picture.arrow([(270, 208), (270, 222)])
    picture.box(16, 224, 508, 34, "blue", round=6)
    picture.text(270, 246, "the heap", "white", anchor="middle")
    picture.text(16, 282, f"A cache holds at most {most:,} bytes (cache_bytes).", "soft")
    return picture


# ---- generated code, spaces, recipes -------------------------------------------------------------------------------

PURPOSES = {
    "app_heap.h": "the interface",
    "app_heap.c": "the heap: compile this",
    "app_heap_checks.h": "statistics and checks",
    "app_heap_test.c": "a test, no part of the firmware",
}


def files() -> Picture:
    """The files of a generated heap, and which includes which."""
    result = hw.generated_files(hw.zoo("tlsf"))
    includes = {name: re.findall(r'#include "(\w+\.h)"', text) for name, text in result.items()}
    assert result.keys() == PURPOSES.keys()
    places = {
        "app_heap.h": (264, 34),
        "app_heap.c": (16, 146),
        "app_heap_test.c": (288, 146),
        "app_heap_checks.h": (16, 250),
    }
    picture = Picture("The four files of a generated heap and their includes", 324)
    picture.text(16, 28, "heapwright generate tlsf", bold=True)
    for name, (x, y) in places.items():
        picture.card(x, y, 236, name, [PURPOSES[name], f"{result[name].count(chr(10)):,} lines"][: 2 if y < 250 else 1])
    assert "app_heap.h" in includes["app_heap.c"] and "app_heap.h" in includes["app_heap_test.c"]
    assert "app_heap_checks.h" in includes["app_heap.c"]
    picture.arrow([(200, 144), (200, 70), (262, 70)])
    picture.arrow([(406, 144), (406, 110)])
    picture.arrow([(134, 222), (134, 248)])
    picture.text(190, 110, "includes", "soft", anchor="end")
    return picture


def space() -> Picture:
    """What the default space for the broker is made of."""
    recipes = _space()
    kinds = Counter(_design(recipe) for recipe in recipes)
    listed = Counter(_design(recipe) for recipe in recipes if len(recipe.pools) > 1 and recipe.pools[0].kind == "quick")
    rows = kinds.most_common(8)
    text = f"Designs among {len(recipes):,} recipes of a default space"
    picture = Picture(text, 64 + 34 * len(rows) + 30)
    picture.text(16, 28, f"{len(recipes):,} recipes, the broker's default space", bold=True)
    span = Span(0, rows[0][1], 190, 440)
    for at, (name, count) in enumerate(rows):
        y = 46 + at * 34
        picture.text(180, y + 17, name, anchor="end")
        picture.box(190, y, span.at(count) - 190, 24, "sky")
        picture.box(190, y, span.at(listed[name]) - 190, 24, "blue")
        picture.text(span.at(count) + 8, y + 17, f"{count:,}", "soft")
    foot = picture.height - 26
    picture.box(190, foot - 12, 14, 14, "blue")
    picture.text(210, foot, "behind quick lists", "soft")
    picture.box(370, foot - 12, 14, 14, "sky")
    picture.text(390, foot, "without", "soft")
    return picture


def _design(recipe: hw.Recipe) -> str:
    """What finds a free block, of the pool that owns most."""
    pool = next((item for item in recipe.pools if item.kind != "quick"), recipe.pools[0])
    if pool.kind != "general":
        return {"fixed": "fixed classes", "buddy": "buddies", "partition": "partitions"}.get(pool.kind, pool.kind)
    if pool.bins != "none":
        return f"{pool.bins} bins".replace("lea", "Lea's")
    return "a tree" if pool.free_list == "tree" else "one list"


def pools() -> Picture:
    """How a request tries the pools of a recipe in turn, with what each gets of a trace."""
    recipe = hw.zoo("drr-proposed")
    trace = hw.workload("drr", PACKETS)
    sizes = trace.size[trace.op == hw.MALLOC]
    quick, general = recipe.pools
    assert isinstance(quick, hw.pools.Quick) and isinstance(general, hw.pools.General) and quick.sizes
    rounded = -(-sizes.astype(int) // recipe.align) * recipe.align
    share = float(np.isin(rounded, quick.sizes).mean())
    text = "A request tries quick lists first, then the general pool"
    picture = Picture(text, 300)
    picture.text(16, 28, recipe.name, bold=True)
    picture.text(16, 54, f"{len(sizes):,} requests of queues of packets", "soft")
    picture.arrow([(134, 62), (134, 82)])
    height = picture.card(
        16, 84, 236, "1: quick", [f"sizes {', '.join(map(str, quick.sizes))}", "freed blocks wait in lists"]
    )
    picture.text(272, 104, f"{share:.1%} ask for these sizes:", "ink")
    picture.text(272, 104 + LINE, "a waiting block is taken at once", "soft")
    y = 84 + height
    picture.arrow([(134, y + 2), (134, y + 44)])
    picture.lines(146, y + 20, ["another size, or nothing waits"], "soft")
    picture.card(
        16, y + 46, 236, "2: general", [f"{general.fit} fit, order {general.order}", f"coalesce {general.coalesce}"]
    )
    picture.lines(272, y + 66, ["all other sizes, and new blocks", "for the lists"], "ink")
    return picture


def proof() -> Picture:
    """How many programs the defaults of a proof allow, and what holds after each call of them."""
    defaults = {name: item.default for name, item in signature(hw.prove).parameters.items()}
    calls, largest = defaults["calls"], defaults["largest"]
    text = f"{calls} mallocs and frees in every order, and what holds after each"
    picture = Picture(text, 330)
    picture.text(16, 28, f"{calls} calls, requests up to {largest} bytes: every program", bold=True)
    sizes, programs = largest + 2, 1
    for at in range(calls):
        x, frees = 16 + at * 176, at + 2
        picture.card(x, 44, 156, f"malloc {at + 1}", [f"0 to {largest} bytes,", f"or none: {sizes} ways"])
        picture.arrow([(x + 78, 116), (x + 78, 132)])
        picture.card(x, 134, 156, "free", ["any object,", f"or none: {frees} ways"])
        if at + 1 < calls:
            picture.arrow([(x + 158, 170), (x + 167, 170), (x + 167, 80), (x + 174, 80)])
        programs *= sizes * frees
    picture.text(16, 234, f"At most {programs:,} programs; after each call:", bold=True)
    words = (
        ("alignment", "bounds", "overlap"),
        ("capacity", "content", "invariants"),
    )
    for down, row in enumerate(words):
        for at, word in enumerate(row):
            picture.box(16 + at * 176, 248 + down * 38, 156, 30, "blue", round=6)
            picture.text(94 + at * 176, 268 + down * 38, word, "white", anchor="middle")
    return picture
