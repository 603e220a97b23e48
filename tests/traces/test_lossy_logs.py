"""Logs that lack calls: what overlaps is ended, losses of a board are reported in place, and substitutes inserted."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from heap_logs import (
    BOARD_COMPACT,
    BOARD_COUNTED,
    BOARD_FREED,
    BOARD_LOSSY,
    BOARD_MALLOC,
    BOARD_OTHER,
    board_dump,
    board_record,
)

import heapwright as hw
from heapwright._support.errors import HeapwrightError
from heapwright._traces.logs import blocks, board_lines
from heapwright._traces.logs.history import LogHistory
from heapwright._traces.logs.placeholders import Placeholders
from heapwright._traces.trace import Trace
from heapwright._traces.validation import FREE, MALLOC, REALLOC


def imported(folder: Path, text: str | bytes) -> Trace:
    log = folder / "app.log"
    log.write_bytes(text.encode() if isinstance(text, str) else text)
    return hw.import_log(log)


def calls(trace: Trace) -> list[tuple[int, int]]:
    return list(zip(trace.op.tolist(), trace.objects()[0].tolist(), strict=True))


def test_an_object_where_others_lie_ends_these(tmp_path: Path) -> None:
    lines = "hw+ 0x20000100 100\nhw+ 0x20000140 64\nhw+ 0x20000120 64\nhw- 0x20000140\nhw- 0x20000120\n"
    trace = imported(tmp_path, lines)
    assert calls(trace) == [(MALLOC, 0), (FREE, 0), (MALLOC, 1), (FREE, 1), (MALLOC, 2), (FREE, 2)]
    assert trace.peak_live_bytes == 100
    assert trace.repairs == (
        "frees missing in the log, inserted where other objects overlap: 2, 1 of which the log frees later; this "
        "lowers the peak by 128 B",
    )


def test_neighbours_do_not_overlap_and_what_grows_in_place_ends_what_it_grows_over(tmp_path: Path) -> None:
    beside = "hw+ 0x100 64\nhw+ 0x140 64\nhw+ 0x1c0 0\nhw+ 0x180 64\nhw= 0x100 0x100 64\n"
    assert imported(tmp_path, beside).repairs == ()
    grown = imported(tmp_path, beside + "hw= 0x100 0x100 65\n")
    assert calls(grown)[-2:] == [(FREE, 1), (REALLOC, 0)]
    huge = imported(tmp_path, beside + "hw+ 0x120 99999999999\n")  # no object: it ends only what begins there
    assert huge.repairs == ("calls for more than 2^31 bytes, left out: 1",)
    huge = imported(tmp_path, beside + "hw+ 0x140 99999999999\nhw- 0x140\n")
    assert calls(huge)[-1] == (FREE, 1)


def test_numbers_that_are_no_addresses_do_not_overlap(tmp_path: Path) -> None:
    assert imported(tmp_path, "20000\n3\n3\n1\na 0 512\na 1 128\na 2 640\n").repairs == ()


@pytest.mark.parametrize(("addresses", "calls", "seeds"), [(3000, 200, 40), (60_000, 2000, 4)])  # in several lists
def test_blocks_are_those_that_a_list_of_all_would_find(addresses: int, calls: int, seeds: int) -> None:
    for seed in range(seeds):
        draw, live, model = random.Random(seed), blocks.LiveBlocks(overlap=False), dict[int, int]()
        for number in range(calls):
            address, size = draw.randrange(1, addresses), draw.choice([0, 1, 5, 20, 60, 500])
            if draw.random() < 0.2:
                address = draw.choice([*model, address])
                assert (address in live) == (address in model)
                assert live.take(address) == model.pop(address, None)
                continue
            end = address + max(size, 1)
            within = [at for at, known in model.items() if at < end and at + max(known & 0xFFFF, 1) > address]
            assert live.place(address, end - address) == [(at, model.pop(at)) for at in sorted(within)]
            live.put(address, number << 32 | size)
            model[address] = number << 32 | size


def test_lines_of_a_board_that_lost_calls_tell_where(tmp_path: Path) -> None:
    trace = imported(tmp_path, BOARD_LOSSY)
    assert trace.metadata["caveats"] == "14 calls were lost on the board, whose ring was full"
    assert trace.repairs[-1].startswith("calls missing in the log: 14 in 2 places, the most, 7, after call ")
    # 8 mallocs of 40 to 47 bytes were reported, 5 of 48 to 52 counted, and one that was freed among them left out
    assert trace.peak_live_bytes == sum(range(40, 53))


def test_no_character_of_a_line_may_be_another() -> None:
    text = BOARD_COMPACT.splitlines()[1].encode().removeprefix(b"hw!")
    assert [code.kind for code in board_lines.line_of(b"!", text).codes][1:] == [board_lines.MALLOC, board_lines.CALLOC]
    for place in range(len(text)):
        for other in b"$5aO~":
            changed = text[:place] + bytes([other]) + text[place + 1 :]
            if changed != text:
                with pytest.raises(board_lines.DamagedError):
                    board_lines.line_of(b"!", changed)
        with pytest.raises(board_lines.DamagedError):
            board_lines.line_of(b"!", text[:place] + text[place + 1 :])


def told_in(bits: str) -> bytes:
    """A line of one code, of these bits behind those of its head, which are 0."""
    pair, base = board_lines._PAIR_BITS, board_lines._BASE
    whole = "0" * 66 + bits
    whole += "0" * (-len(whole) % pair)
    pairs = [divmod(int(whole[at : at + pair], 2), base) for at in range(0, len(whole), pair)]
    text = bytes(board_lines._FIRST + item for item in (1, *(item for both in pairs for item in both)))
    value = board_lines._HASH_BEGIN
    for item in text:
        value = (value ^ item) * board_lines._HASH_FACTOR & 0xFFFFFFFF
    return text + bytes(board_lines._FIRST + item for item in divmod(value >> board_lines._HASH_SHIFT, base))


def test_a_code_that_no_board_tells_is_damage() -> None:
    (code,) = board_lines.line_of(b"*", told_in("111111" + "10" + "0" * 36)).codes
    assert code.kind == board_lines.SITE
    for length in range(40):
        with pytest.raises(board_lines.DamagedError):
            board_lines.line_of(b"*", told_in("111111" + "11" + "0" * length))


def test_a_board_that_starts_again_has_an_empty_heap(tmp_path: Path) -> None:
    once = BOARD_COMPACT.replace("[net] ", "")
    trace = imported(tmp_path, once + once)
    assert trace.metadata["caveats"] == "the board was started again once; all live objects are freed there"
    assert calls(trace)[4:6] == [(FREE, 1), (MALLOC, 2)]
    assert trace.peak_live_bytes == imported(tmp_path, once).peak_live_bytes


def test_a_dump_tells_where_its_full_ring_lost_calls(tmp_path: Path) -> None:
    mark = [board_record(word, BOARD_OTHER, kind) for kind, word in enumerate((31_457, 20_000, 640_000, 11_457), 4)]
    trace = imported(tmp_path, board_dump(room=32, lost=31_457, more=mark))
    assert trace.metadata["caveats"] == "31457 calls were lost on the board, whose ring was full"
    assert trace.repairs == (
        "calls missing in the log: 31457 in 1 place, the most, 31457, after call 8; 8543 placeholder objects "
        "inserted, which raise the peak by 273,288 B",  # 8,543 of 32 bytes, 88 bytes below the peak before
    )


def test_a_dump_tells_the_site_of_what_is_asked_for_and_none_of_a_free(tmp_path: Path) -> None:
    site, mine, other = 0x08001234, 0x20005000, 0x20006000
    more = [
        board_record(site, BOARD_OTHER, 15),
        board_record(mine, BOARD_MALLOC, 8),
        board_record(mine, BOARD_OTHER, BOARD_FREED),
        board_record(other, BOARD_MALLOC, 16),
    ]
    trace = imported(tmp_path, board_dump(room=32, more=more))
    assert [trace.sites[item] for item in trace.site[-3:]] == ["0x8001234", "", "0x8001234"]
    assert not trace.site[:-3].any()


def test_a_dump_whose_numbers_of_lost_calls_are_out_of_order_is_damaged_there(tmp_path: Path) -> None:
    numbers = ((4, 31_457), (5, 20_000), (5, 640_000), (6, 11_457))
    mark = [board_record(word, BOARD_OTHER, kind) for kind, word in numbers]
    trace = imported(tmp_path, board_dump(room=32, lost=31_457, more=mark))
    assert trace.repairs == () and trace.peak_live_bytes == imported(tmp_path, board_dump()).peak_live_bytes


def test_a_board_that_counts_its_bytes_loses_no_peak(tmp_path: Path) -> None:
    trace = imported(tmp_path, BOARD_COUNTED)
    assert trace.metadata["caveats"] == "12 calls were lost on the board, whose ring was full"
    assert trace.repairs[-1].endswith(" B, from the byte counts of the log")
    assert trace.peak_live_bytes == sum(range(40, 70))  # among the lost
    assert trace.live_bytes[-1] == pytest.approx(sum(range(40, 70)) - 65 - 42 - 67 - 41 - 43 + 100, abs=8)
    assert trace.sites == ("", "0xf7ceb2d5")
    requested = trace.op != FREE
    assert trace.site[requested].any() and not trace.site[~requested].any()


def test_an_elf_is_for_logs_that_have_addresses(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text(BOARD_COUNTED)
    (tmp_path / "app.elf").write_text("no program")
    with pytest.raises(HeapwrightError, match=r"app\.elf: not an ELF file; give the program as it was linked"):
        hw.import_log(tmp_path / "app.log", elf=tmp_path / "app.elf")
    with pytest.raises(HeapwrightError, match=r"none\.elf: no such file"):
        hw.import_log(tmp_path / "app.log", elf=tmp_path / "none.elf")
    (tmp_path / "app.log").write_text("hw+ 0x100 24\n")
    with pytest.raises(HeapwrightError, match="a text log has no addresses to look up"):
        hw.import_log(tmp_path / "app.log", elf=tmp_path / "app.elf")


def test_a_dump_counts_the_bytes_that_its_full_ring_lost(tmp_path: Path) -> None:
    numbers = (500, 12, 1000, 1, 48, 3000)  # calls, objects and bytes that came, frees and bytes of others, rise
    mark = [board_record(word, BOARD_OTHER, kind) for kind, word in enumerate(numbers, 8)]
    trace = imported(tmp_path, board_dump(room=32, lost=500, more=mark))
    assert trace.metadata["caveats"] == "500 calls were lost on the board, whose ring was full"
    assert trace.peak_live_bytes == 15 + (2 << 20) + 3000
    assert trace.live_bytes[-1] == pytest.approx(15 + (2 << 20) + 1000, rel=0.01)


def test_the_stand_in_is_taken_whose_size_is_nearest() -> None:
    living = Placeholders()
    assert living.nearest(24) == 0
    for number, size in enumerate((16, 100, 40)):
        living.add(number << 32 | size)
    assert [living.nearest(size) for size in (0, 27, 29, 50, 71, 90, 1000)] == [16, 16, 40, 40, 100, 100, 100]
    assert (living.take_nearest(90), len(living), living.bytes) == (1 << 32 | 100, 2, 56)
    assert (living.take_oldest(), living.take_oldest(), len(living), living.bytes) == (16, 2 << 32 | 40, 0, 0)


def test_stand_ins_make_as_many_objects_live_as_do() -> None:
    history = LogHistory()
    history.allocate(0x100, 24)
    history.lose(10, 2, 40)  # 2 more live, of 40 bytes each
    history.release(0x900)  # one of them
    history.allocate(0x108, 8)  # 0x100 was freed, so one more was allocated, of which no more is known
    assert (history.peak_bytes, history.peak_objects) == (104, 3)
    history.lose(3, -3)
    history.lose(1, 1, 1000)  # one of three that are thought to live and do not
    columns = history.trace("app", {}).live_bytes.tolist()
    assert columns == [24, 64, 104, 64, 40, 64, 72, 32, 8]


LEAKY = "".join(
    f"hw+ {at:#x} 100\nhw+ {at + 128:#x} 24\nhw- {at:#x}\n"
    if at % 2048
    else f"hw+ {at:#x} 100\nhw= {at:#x} {at:#x} 90\n"
    for at in range(1024, 16384, 1024)
)
"""What is allocated with 24 bytes is never freed, what is with 100 in eight of 15 times."""


def test_a_peak_above_the_arena_is_refused_or_repaired(tmp_path: Path) -> None:
    trace = imported(tmp_path, LEAKY)
    log = tmp_path / "app.log"
    assert trace.peak_live_bytes == 7 * 90 + 8 * 24 + 100
    with pytest.raises(HeapwrightError, match=r"app.log: 922 bytes live at once, and its arena has 600: frees are mis"):
        hw.import_log(log, arena=600)
    repaired = hw.import_log(log, arena=600, repair=True)
    assert repaired.peak_live_bytes <= 600
    assert repaired.repairs[-1].startswith("frees inserted to fit the arena: ")
    ended = set(repaired.id[repaired.op == FREE].tolist()) - set(trace.id[trace.op == FREE].tolist())
    assert ended and {int(trace.size[trace.id == number][0]) for number in ended} == {100}  # as most of them are freed
    with pytest.raises(HeapwrightError, match="124 bytes of objects that the log frees are live at once"):
        hw.import_log(log, arena=110, repair=True)
    written = hw.convert_log(log, tmp_path / "app.parquet", arena=600, repair=True)
    assert (written.calls, written.requested_peak_bytes) == (len(repaired), repaired.peak_live_bytes)
    assert hw.read_trace(tmp_path / "app.parquet").peak_live_bytes == written.requested_peak_bytes
    with pytest.raises(HeapwrightError, match="repair"):
        hw.convert_log(log, tmp_path / "app.parquet", arena=600)


def test_a_board_tells_the_size_of_its_arena(tmp_path: Path) -> None:
    output = BOARD_LOSSY.replace("hw:000003e800000007", "hw:000003e80000000700000258")
    assert imported(tmp_path, output).peak_live_bytes == 598 <= 0x258
    with pytest.raises(HeapwrightError, match="598 bytes live at once, and its arena has 512"):
        imported(tmp_path, output.replace("00000258", "00000200"))
