"""Pools by call site: the arena that they need, and the same heap without, on the recording that they were learnt on
and on another of the program.

    .venv/bin/python bench/by_site.py [DIR]

DIR has pairs of recordings with sites, NAME_a.parquet and NAME_b.parquet, `pairs/sites` by default. Sites and sizes of
regions are learnt on a, as `site_class` of a space does. Each column is the smallest arena over that of best fit among
exact bins, at alignment 8, on a and on b. `equal` has counted blocks for the sites that ask for one size, `by size` the
same blocks for any site that requests such a size; each `taken` is that heap where it is smaller on a, else best fit.
`short` and `long` have a region for sites by the lives of their objects; `two ends` is what the short-lived and all
others would need in two heaps that share no memory, control data counted once. Next to them stand heaps that one would
take blind.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import heapwright as hw
from heapwright import Recipe, Trace

BASE = {"kind": "general", "bins": "exact", "fit": "best"}
BLIND = ("all-round", "victim-bins", "lea-2.7.2")
COLUMNS = ("taken: equal", "taken: by size", "equal", "by size", "short", "long", "two ends", *BLIND)
CHOSEN_ON = ("coap", "curl", "iperf3", "lighttpd", "monit", "rrdtool", "tcpdump", "xmllint")
CLASSES = {"equal": {"kind": "fixed"}, "short": BASE, "long": BASE}


def needs(trace: Trace, recipe: Recipe) -> int:
    """The smallest arena in bytes."""
    return int(hw.replay(trace, recipe, fit=True).metrics["smallest_arena_bytes"] or 0)


def without_control(recipe: Recipe) -> int:
    """Bytes of a heap's control data: what it needs for next to nothing."""
    return needs(Trace.from_columns(op=[0], id=[0], size=[1]), recipe) - 16


def moved(name: str) -> Recipe:
    """A heap of the zoo at alignment 8."""
    result = hw.zoo(name)
    assert isinstance(result, Recipe)
    return result.at_alignment(8)


def learnt(trace: Trace, of: str, **keys: int) -> Recipe | None:
    """Best fit with a pool for the sites of a class; None where the trace has no such sites."""
    text = "include_zoo = false\nalign = 8\n"
    for pool in (CLASSES[of] | {"site_class": of} | keys, BASE):
        text += "[[pool]]\n" + "".join(f"{key} = {value!r}\n" for key, value in pool.items())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "space.toml")
        path.write_text(text)
        (recipe,) = hw.Space.load(path, [trace]).recipes()
    return recipe if recipe.sites else None


def by_size(recipe: Recipe) -> Recipe:
    """The same pools, which any request may ask."""
    data = recipe.to_dict()
    data["pool"] = [{key: value for key, value in pool.items() if key != "sites"} for pool in data["pool"]]
    return Recipe.from_dict(data)


def apart(trace: Trace, sites: tuple[str, ...], base: Recipe) -> int:
    """What the objects of some sites and all others need in memory of their own, control data counted once."""
    number, count = trace.objects()
    born = trace.op <= 1
    of = np.zeros(count, np.uint32)
    of[number[born]] = trace.site[born]
    mine = np.isin(np.array(trace.sites, dtype=object), sites)[of[number]]
    parts = [
        Trace.from_columns(op=trace.op[item], id=number[item], size=trace.size[item], align=trace.align[item])
        for item in (mine, ~mine)
        if item.any()
    ]
    return sum(needs(part, base) for part in parts) - (len(parts) - 1) * without_control(base)


def row(a: Trace, b: Trace, blind: dict[str, Recipe]) -> dict[str, tuple[float, float]]:
    """Each heap's arena over that of best fit, on both recordings; those for classes that a has not are absent."""
    base = Recipe.from_dict({"align": 8, "pool": [BASE]})
    least = {trace.name: needs(trace, base) for trace in (a, b)}
    heaps = {of: recipe for of in CLASSES if (recipe := learnt(a, of)) is not None}
    if "equal" in heaps:
        heaps["by size"] = by_size(heaps["equal"])
    results = {
        name: (needs(a, item) / least[a.name], needs(b, item) / least[b.name]) for name, item in (heaps | blind).items()
    }
    for name in ("equal", "by size"):
        results[f"taken: {name}"] = min(results.get(name, (1.0, 1.0)), (1.0, 1.0), key=lambda needed: needed[0])
    if ended := learnt(a, "short", region=1 << 16):
        ends = [apart(trace, ended.sites[0], base) / least[trace.name] for trace in (a, b)]
        results["two ends"] = (ends[0], ends[1])
    return results


def table(title: str, paths: list[Path]) -> None:
    """Print a row a program, the means, and the most."""
    blind = {name: moved(name) for name in BLIND}
    print(f"\n| {title} | {' | '.join(COLUMNS)} |\n| --- |{' ---: |' * len(COLUMNS)}")
    rows = []
    for path in paths:
        a, b = (Trace.read(item) for item in (path, path.with_name(path.name.replace("_a.", "_b."))))
        rows.append(row(a, b, blind))
        cells = ["{:.3f}, {:.3f}".format(*rows[-1][name]) if name in rows[-1] else "-" for name in COLUMNS]
        print(f"| {path.name.removesuffix('_a.parquet')} | {' | '.join(cells)} |", flush=True)
    each = [np.array([item.get(name, (1.0, 1.0)) for item in rows]) for name in COLUMNS]
    print(f"| mean | {' | '.join('{:.3f}, {:.3f}'.format(*np.exp(np.log(item).mean(axis=0))) for item in each)} |")
    print(f"| most | {' | '.join('{:.3f}, {:.3f}'.format(*item.max(axis=0)) for item in each)} |")


def main() -> None:
    """Print both tables: programs that the rules of `heapwright._traces.site_classes` were chosen on, and others."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("pairs") / "sites"
    paths = sorted(folder.glob("*_a.parquet"))
    chosen = [path for path in paths if path.stem.removesuffix("_a") in CHOSEN_ON]
    for title, some in (("chosen on", chosen), ("judged on", [path for path in paths if path not in chosen])):
        if some:
            table(title, some)


if __name__ == "__main__":
    main()
