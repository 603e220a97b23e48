"""What a generated heap reports in O(1), or at a bounded cost, is what a walk over all its blocks finds."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_programs import ROOT, STRICT, UNCHECKED
from metric_values import known
from run_length import brief
from traces_random import random_trace

from heapwright._api import cut
from heapwright._generate.emit import generated_files
from heapwright._recipes.policy import policy
from heapwright._recipes.pools import Compact
from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo
from heapwright._replay.replay import replay
from heapwright._traces.trace import Trace

HEAPS = ["tlsf", "victim-bins", "all-round", "kingsley", "binary-buddy", "variable-pool", "contiki-mmem", "memmgr"]
"""Every kind of pool, lists, bins and none."""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Trace, Path]]:
    """The traces that ship, or their begin, and one of random calls, each with its calls in a file."""
    folder = tmp_path_factory.mktemp("calls")
    results = []
    paths = [ROOT / "examples" / f"{name}.parquet" for name in ("lighttpd_server", "mosquitto_broker")]
    shipped = [cut(Trace.read(path), first=brief(5_000, 1 << 30)) for path in paths]
    for trace in [*shipped, random_trace(random.Random(14), 4000)]:
        numbers = np.array([len(trace), trace.calls.slots], np.uint32).tobytes()
        (folder / trace.name).write_bytes(numbers + trace.calls.records().tobytes())
        results.append((trace, folder / trace.name))
    return results


@pytest.mark.parametrize("name", HEAPS)
def test_counters_are_what_the_walk_tells(name: str, traces: list[tuple[Trace, Path]], tmp_path: Path) -> None:
    threads = "lock" if name == "victim-bins" else "none"
    recipe = Recipe.from_dict(zoo.load(name).to_dict() | {"counters": True, "threads": threads})
    pool = recipe.pools[0]
    for file, text in generated_files(recipe).items():
        (tmp_path / file).write_text(text)
    words = [f"-DHANDLE_WORDS={pool.reference_words}"] if isinstance(pool, Compact) else []
    sources = [str(tmp_path / "app_heap.c"), str(ROOT / "tests" / "c" / "generated_driver.c")]
    flags = [*STRICT, UNCHECKED, "-O0", "-pthread", "-DCOUNTERS", *words, f"-I{tmp_path}"]
    subprocess.run(["cc", *flags, *sources, "-o", str(tmp_path / "driver")], check=True)
    looked = short = 0
    least = policy(recipe)["fixed_end"]
    for trace, calls in traces:
        footprint = replay(trace, recipe)["footprint_bytes"]
        assert isinstance(footprint, int)
        for arena in (2 * footprint, max(footprint // 2, least) + 4096):
            command = [str(tmp_path / "driver"), str(calls), str(arena), "0"]
            done = subprocess.run(command, env={"LOOKS": "1"}, capture_output=True, text=True, check=True)
            assert done.stderr.split()[3:] == ["0", "0"], (trace.name, arena)
            looked, short = (a + int(b) for a, b in zip((looked, short), done.stdout.split(), strict=True))
    assert looked > 300
    print(f"{name}: largest free block not found in 4 looks in {short} of {looked}")


def test_counters_cost_what_the_replay_says() -> None:
    trace = Trace.read(ROOT / "examples" / "mosquitto_broker.parquet")
    plain = zoo.load("tlsf")
    counting = Recipe.from_dict(plain.to_dict() | {"counters": True})
    without, counted = replay(trace, plain), replay(trace, counting)
    assert 0 < known(counted["footprint_bytes"]) - known(without["footprint_bytes"]) <= 16
    assert known(counted["accesses"]) > known(without["accesses"])
    assert counting.hash != plain.hash
