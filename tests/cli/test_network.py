"""`heapwright network`: from a capture to a heap, a proved reserve, C that compiles, and a page."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from networks import random_packets

import heapwright as hw
from heapwright._cli import heapwright
from heapwright._support.subprocesses import find_compiler
from heapwright._traffic.workloads.made import maker
from heapwright._traffic.workloads.queue_bound import QueueBound, queue_bound

FEW = ["--set", "count=300", "--budget", "3s"]
"""A short run: fixed blocks are tried in any case."""


def run(*words: str | Path) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(heapwright, ["network", *map(str, words)])


@pytest.fixture(scope="module")
def packets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("network") / "office.parquet"
    random_packets(1200).write(path)
    return path


def test_a_ring_gives_fixed_blocks_with_a_proof_and_each_step_is_a_command(packets: Path, tmp_path: Path) -> None:
    """16 frames of up to 1,514 bytes: 16 blocks of 1,520, at alignment 8, and 24 bytes of control data."""
    folder = tmp_path / "out"
    result = run(packets, "--ring", "16", *FEW, "-o", folder, "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["reserve_bytes"] == 16 * 1520 + 32
    (proof,) = answer["proofs"]
    assert proof["arena"] == proof["order"] == 16 * 1520 + 24
    assert answer["queues"][0]["payload_bytes"] == 16 * 1514
    # a malloc and a free make 3 loads and 3 stores, of 9.88 and 16.35 pJ in 24,344 bytes of 90 nm memory
    assert answer["energy_nJ_per_block"]["90 nm"] == pytest.approx(3 * (9.88 + 16.35) / 1000, rel=0.02)
    assert answer["energy_nJ_per_block"]["22 nm"] == pytest.approx(3 * (1.68 + 1.09) / 1000, rel=0.02)
    assert "proved for any order of at most 16 of up to 1,514 bytes" in Path(answer["page"]).read_text(encoding="utf-8")
    commands = [shlex.split(line) for line in answer["commands"]]
    assert [words[1] for words in commands] == ["profile", "workload", "explore", "generate", "report"]
    (trace,) = answer["traces"]
    written = hw.read_trace(trace)
    alone = CliRunner().invoke(heapwright, commands[1][1:])
    assert alone.exit_code == 0 and hw.read_trace(trace).metadata == written.metadata
    source = next(path for path in map(Path, answer["files"]) if path.name == "net_heap.c")
    test = source.with_name("net_heap_test.c")
    program = tmp_path / "test"
    subprocess.run(
        [find_compiler("a test"), "-O1", "-DNET_HEAP_ALIGN_UNCHECKED", str(source), str(test), "-o", str(program)],
        check=True,
    )
    subprocess.run([str(program)], check=True)


def test_the_commands_are_printed_as_they_are_done(packets: Path, tmp_path: Path) -> None:
    printed = run(packets, "--queue", "drr", "--ring", "8", *FEW, "-o", tmp_path / "out").stdout
    for title in ("The traffic", "The queue", "The heap", "C", "The page"):
        assert f"\n{title}\n$ heapwright " in printed
    assert "The queue holds at most 8 of up to 1,476 bytes and 8 of 24 bytes" in printed
    assert "blocks of 24, 1480" in printed


def test_a_link_that_does_not_keep_up_is_said_with_a_ring_that_bounds_it(packets: Path) -> None:
    def found(load: float) -> QueueBound:
        make = maker("easyport", packets, {}, "load")
        return queue_bound(make(load=load), lambda **changed: maker("easyport", packets, changed)(), load)

    slow, fast = found(1.6), found(0.5)
    assert not slow.keeps_up and slow.waiting > 0.1 and slow.ring is not None and slow.ring >= 16
    assert "The link is too slow or the queue too long: " in slow.sentence(1000)
    assert f"A ring of {slow.ring} would bound it and drop " in slow.sentence(1000)
    assert fast.keeps_up and fast.dropped == 0
    assert fast.sentence(1000).startswith("Nothing bounds the queue: a reserve holds for this load only.")
    ring = hw.workload("easyport", packets, load=1.6, ring=slow.ring)
    lost = int(ring.metadata["dropped"]) / 1200
    assert slow.dropped == pytest.approx(lost)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--queue", "lifo"], "lifo: valid: fifo, drr, priority, fixed, or a Python file"),
        (["--set", "colour=red"], "valid: NAME=VALUE with NAME one of count, rate"),
        (["--queue", "fixed", "--state", "8"], "the fixed queue stores packets alone"),
        (["--platform", "freertoss"], "freertos"),
    ],
)
def test_wrong_values_are_named(packets: Path, tmp_path: Path, words: list[str], message: str) -> None:
    result = run(packets, *FEW, *words, "-o", tmp_path / "out")
    assert result.exit_code in (1, 2)
    assert message in result.output + str(result.exception)


def test_two_captures_of_one_name_and_a_missing_one_are_errors(packets: Path, tmp_path: Path) -> None:
    assert "has the same name" in str(run(packets, packets, "-o", tmp_path / "out").exception)
    assert "no such file" in str(run(tmp_path / "none.pcap", "-o", tmp_path / "out").exception)
