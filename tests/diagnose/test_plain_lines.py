"""Lines that people post, in one form: colours, prefixes, units, and numbers and words of other languages."""

from __future__ import annotations

import pytest

from heapwright._diagnose.plain_lines import plain_lines
from heapwright._diagnose.readings import readings_of


def values(text: str) -> dict[str, dict[str, float]]:
    """The last reading of each memory in a text."""
    readings = readings_of(plain_lines(text.split("\n")))
    return {
        name: {str(key): value for key, value in items[-1].values.items()} for name, items in readings.memories.items()
    }


@pytest.mark.parametrize(
    ("line", "free", "largest"),
    [
        ("\x1b[0;32mI (4711) app: free heap 121000, largest block 64000\x1b[0m", 121_000, 64_000),
        ("[00:00:15.109,035] \x1b[0m<inf> mon: task=monitor heap_free=1KiB max_block=512B\x1b[0m", 1024, 512),
        ("> > free heap: 121000, largest block: 64000", 121_000, 64_000),
        ("<30>Jan  8 20:00:00 gateway app[212]: free heap: 121000 largest block: 64000", 121_000, 64_000),
        ("07.02.2023 00:00:03 freier Heap: 187.432 Bytes, größter Block: 112.456 Bytes", 187_432, 112_456),
        ("tas libre : 19 224 o ; plus grand bloc : 18 960 o", 19_224, 18_960),
        ("free heap: 121'000 largest block: 64'000", 121_000, 64_000),
        ("esp,host=kitchen free=118425i,maxblk=101845i,clients=3i 1717999200000000000", 118_425, 101_845),
        ("free 0x3950 largest 0x3948", 0x3950, 0x3948),
        ("'Heap Free': Sending state 28369.00000 B, 'Heap Max Block': Sending state 25975.00000 B", 28_369, 25_975),
    ],
)
def test_a_line_is_read_as_a_person_reads_it(line: str, free: int, largest: int) -> None:
    (reading,) = values(line).values()
    assert (reading["free"], reading["largest"]) == (free, largest)


def test_addresses_and_decimal_numbers_stay_as_they_are() -> None:
    lines = ["free 0x20003000 of 64 bytes", "load 1.234 free 12.5 KB", "fragmentation 7.432 %"]
    assert plain_lines(lines) == lines


def test_a_table_with_semicolons_has_decimal_commas_and_per_cent_are_no_bytes() -> None:
    table = "Zeit;Heap frei [KB];Last [%]\n05.01.24 01:00;40,5;55,3\n05.01.24 02:00;41,0;53,6"
    assert values(table) == {"heap": {"free": 41 * 1024}}


def test_the_time_of_a_logger_and_of_a_time_series_are_read() -> None:
    text = "Jan  8 20:00:00 gw app[2]: free heap: 9000\nJan  8 20:05:00 gw app[2]: free heap: 8000"
    assert [item.seconds for item in readings_of(plain_lines(text.split("\n"))).memories["heap"]] == [72_000, 72_300]


def test_a_table_behind_the_prefix_of_a_logger_is_read() -> None:
    text = (
        "May 11 21:04:11 gw nsh[4]:          total    used    free largest nused nfree\n"
        "May 11 21:04:11 gw nsh[4]: Umem:  2719744  392144 2327600 2312602  1204    21"
    )
    assert values(text) == {"Umem": {"total": 2_719_744, "used": 392_144, "free": 2_327_600, "largest": 2_312_602}}


def test_ps_lists_resident_memory_in_its_unit() -> None:
    text = "USER  PID  VSZ(KiB)  RSS(KiB) ETIME COMMAND\nroot 1204 51200 14695 00:01:00 /usr/sbin/relayd -f"
    assert values(text) == {"heap": {"used": 14_695 * 1024}}
