"""A log of heap calls in each format that is imported, written as the format's own sources print it."""

from __future__ import annotations

import struct
from collections.abc import Sequence

TEXT = """booting
[  0.1] hw+ 0x20000100 24 1000 main
hw+ 0x20000200 100 1500 net
noise hw= 0x20000100 0x20000300 48 1800
hw- 0x20000200 2000 net
hw- 0x20000300
"""

VALGRIND = """==10== Memcheck, a memory error detector
--10-- malloc(24) = 0x4A42040
--10-- _Znwm(100) = 0x4A42090
--10-- memalign(al 64, size 128) = 0x4A42100
--10-- realloc(0x4A42040,48) = 0x4A42200
--11-- malloc(7) = 0x4A42040
--10-- _ZdlPvm(0x4A42090)
--10-- realloc(0x0,9)malloc(9) = 0x4A42300
--10-- calloc(3,5) = 0x4A42400
--10-- free(0x0)
--10-- free(0x4A42200)
--10-- free(0x5555555)
"""

LTRACE = """100 10:00:00.000001 malloc(24)  = 0x5000
101 10:00:00.000002 realloc(0x5000, 48 <unfinished ...>
100 10:00:00.000003 malloc(16) = 0x5000
101 10:00:00.000004 <... realloc resumed> ) = 0x6000
100 10:00:00.000005 strlen("malloc(3) = 0x1") = 15
100 10:00:00.000006 libc.so.6->calloc(3, 7) = 0x7000
100 10:00:00.000007 _Znwm(72, 1, 1, 1) = 0x8000
100 10:00:00.000008 operator delete(void*)(0x8000, 1, 1) = <void>
100 10:00:00.000009 free(0x5000 <unfinished ...>
100 10:00:00.000010 <... free resumed> ) = <void>
100 10:00:00.000011 free(nil) = <void>
100 10:00:00.000012 malloc(99 <no return ...>
"""

MTRACE = """= Start
@ ./app:(main+0x16)[0x401156] + 0x1000 0x18
@ ./app:(grow+0x20)[0x401180] < 0x1000
@ ./app:(grow+0x20)[0x401180] > 0x2000 0x30
@ ./app:(grow+0x20)[0x401180] ! 0x2000 0x7fffffff
@ ./app:(main+0x40)[0x401199] - 0x2000
= End
"""

HEAPTRACK = """v 10400 3
x 5 ./app
m 5 ./app 1000 0 10
t 401156 0
+ 18 1 1000
c a
+ 64 1 2000
- 1000
- 2000
"""

INTERPRETED = """v 10400 3
X ./app
s 5 ./app
a 18 1
+ 0
a 64 1
+ 1
+ 0
c 14
- 0
- 0
- 1
"""

MALLOCLAB = "20000\n2\n5\n1\na 0 512\na 1 128\nr 0 640\nf 1\nf 0\n"

RMM = """Thread,Time,Action,Pointer,Size,Stream
1234,10:15:30:000100,allocate,0x7f0000,256,0x0
1235,10:15:30:000200,allocate failure,(nil),4096,0x0
1235,10:15:30:000300,free,0x7f0000,256,0x0
"""

KMEM = """# tracer: nop
            sshd-812   [001] d..2. 100.000100: kmalloc: call_site=alloc_skb+0x4f/0x190 ptr=00000000abc01000 \
bytes_req=640 bytes_alloc=1024 gfp_flags=GFP_ATOMIC node=-1 accounted=false
            sshd-812   [001] d..2. 100.000150: kmem_cache_alloc: call_site=skb_clone+0x20 ptr=00000000abc02000 \
name=skbuff bytes_req=232 bytes_alloc=256 gfp_flags=GFP_ATOMIC
          <idle>-0     [000] d.s3. 100.000200: kfree: call_site=skb_release_data+0x104 ptr=00000000abc01000
          <idle>-0     [000] d.s3. 100.000250: kmem_cache_free: call_site=kfree_skbmem ptr=00000000abc02000 name=skbuff
"""

LTTNG = """[10:00:00.000001000] (+?.?????????) host lttng_ust_libc:malloc: { cpu_id = 0 }, { vtid = 7 }, { size = 24, \
ptr = 0xA00 }
[10:00:00.000002000] (+0.000001000) host lttng_ust_libc:calloc: { cpu_id = 0 }, { vtid = 8 }, { nmemb = 3, size = 5, \
ptr = 0xB00 }
[10:00:00.000003000] (+0.000001000) host lttng_ust_libc:realloc: { cpu_id = 0 }, { vtid = 7 }, { in_ptr = 0xA00, \
size = 48, ptr = 0xC00 }
[10:00:00.000004000] (+0.000001000) host lttng_ust_libc:posix_memalign: { cpu_id = 0 }, { vtid = 7 }, { \
out_ptr = 0xD00, alignment = 64, size = 128, result = 0 }
[10:00:00.000005000] (+0.000001000) host lttng_ust_libc:free: { cpu_id = 0 }, { vtid = 7 }, { ptr = 0xC00 }
"""

ESP_IDF = """====== Heap Trace: 3 records (3 capacity) ======
    24 bytes (@ 0x3ffb1000, Internal) allocated CPU 0 ccount 0x0e0c caller 0x400d1000:0x400d2000
freed by 0x400d3000:0x400d4000
    48 bytes (@ 0x3ffb1000, Internal) allocated CPU 1 ccount 0x0f0c caller 0x400d1100:0x400d2000
    16 bytes (@ 0x3ffb2000, Internal) allocated CPU 0 ccount 0x1f0c caller 0x400d1000:0x400d2000
freed by 0x400d3000:0x400d4000
====== Heap Trace Summary ======
"""

NUTTX = """     init-1   [0] 0.001000000: tracing_mark_write: C|1|Heap Usage|1024|malloc: heap: 0x40001000 size:24, \
address: 0x40002000
       sh-3   [0] 0.002000000: tracing_mark_write: C|3|Heap Usage|1000|free: heap: 0x40001000 size:24, \
address: 0x40002000
"""


PERF = """ 7/7     [000]  10.000001000:         heapwright:malloc: (7f01) size=24
 7/7     [000]  10.000002000: heapwright:malloc__return: (7f01 <- 5501) pointer=0x5000
 7/7     [000]  10.000003000:        heapwright:realloc: (7f02) pointer=0x5000 size=48
 7/8     [001]  10.000004000:         heapwright:malloc: (7f01) size=16
 7/8     [001]  10.000005000: heapwright:malloc__return: (7f01 <- 5502) pointer=0x5000
 7/7     [000]  10.000006000: heapwright:realloc__return: (7f02 <- 5503) pointer=0x6000
 7/7     [000]  10.000007000:        heapwright:realloc: (7f02) pointer=0x0 size=77
 7/7     [000]  10.000008000:         heapwright:malloc: (7f01) size=77
 7/7     [000]  10.000009000: heapwright:malloc__return: (7f01 <- 7f03) pointer=0x7000
 7/7     [000]  10.000010000: heapwright:realloc__return: (7f02 <- 5504) pointer=0x7000
 7/7     [000]  10.000011000:  heapwright:aligned_alloc: (7f04) align=64 size=128
 7/7     [000]  10.000012000:       heapwright:memalign: (7f04) align=64 size=128
 7/7     [000]  10.000013000: heapwright:aligned_alloc__return: (7f04 <- 5505) pointer=0x8000
 7/7     [000]  10.000014000: heapwright:memalign__return: (7f04 <- 5505) pointer=0x8000
 7/7     [000]  10.000015000:         heapwright:calloc: (7f05) count=3 size=7
 7/7     [000]  10.000016000: heapwright:calloc__return: (7f05 <- 5506) pointer=0x9000
 7/8     [001]  10.000017000:           heapwright:free: (7f06) pointer=0x6000
 7/7     [000]  10.000018000:           heapwright:free: (7f06) pointer=0x5000
 9/9     [000]  10.000019000:           heapwright:free: (7f06) pointer=0x5000
 7/7     [000]  10.000020000: PERF_RECORD_LOST lost 12
"""

BPFTRACE = """Attaching 15 probes...
heapwright bpftrace
1000 7 7 + 5000 24
2000 7 7 < 5000
4000 7 7 > 6000 48
3000 7 8 + 5000 16
5000 7 7 ^ 8000 128 64
6000 7 7 * 9000 21
7000 7 8 - 6000
8000 7 7 - 5000
9000 9 9 + 5000 3
Lost 12 events
"""


def sysview_number(value: int) -> bytes:
    """ENCODE_U32 of SEGGER_SYSVIEW.c."""
    encoded = b""
    while value > 0x7F:
        encoded += bytes([value & 0x7F | 0x80])
        value >>= 7
    return encoded + bytes([value])


def sysview_text(text: str) -> bytes:
    """_EncodeStr of SEGGER_SYSVIEW.c."""
    return bytes([len(text)]) + text.encode()


def sysview_packet(number: int, *data: int | bytes, ticks: int = 10, bit: int = 0) -> bytes:
    """_SendPacket of SEGGER_SYSVIEW.c; `bit` is what a second core of ESP-IDF sets in the id."""
    payload = b"".join(sysview_number(item) if isinstance(item, int) else item for item in data)
    length = sysview_number(len(payload)) if number >= 24 else b""
    return sysview_number(number | bit) + length + payload + sysview_number(ticks)


SYSVIEW_HEADER = b";\n; Version     SEGGER SystemViewer V2.42\n; Author      Espressif Inc\n;\n"
SYSVIEW_START = (
    bytes(10)
    + sysview_packet(10, ticks=0)
    + sysview_packet(24, 1_000_000, 1_000_000, 0x20000000, 2, ticks=0)
    + sysview_packet(14, sysview_text("N=App,O=FreeRTOS"))
    + sysview_packet(9, 0x40, 3, sysview_text("main"))
    + sysview_packet(21, 0x40, 0x20001000, 512, 0)
)
SYSVIEW = (
    SYSVIEW_HEADER
    + SYSVIEW_START
    + sysview_packet(31, 2, 0x100, 0x200, 0x1000, 8)
    + sysview_packet(4, 0x40)
    + sysview_packet(31, 3, 0x100, 0x240, 24 >> 2)
    + sysview_packet(2, 15, ticks=100)
    + sysview_packet(31, 4, 0x100, 0x280, 100 >> 2, 77, ticks=200)
    + sysview_packet(3)
    + sysview_packet(512, b"any")
    + sysview_packet(1, 5)
    + sysview_packet(31, 5, 0x100, 0x240)
    + sysview_packet(31, 5, 0x100, 0x280)
    + sysview_packet(11)
)
SYSVIEW_OF_ESP = (
    SYSVIEW_HEADER.replace(b"Inc\n", b"Inc\n; ESP_Extension\n")
    + bytes(10)
    + sysview_packet(10, ticks=0)
    + sysview_packet(24, 40_000_000, 160_000_000, 0x3F400000, 0, ticks=0)
    + sysview_packet(22, 0, 512, sysview_text("M=ESP32 SystemView Heap Tracing Module"))
    + sysview_packet(4, 0x1000, ticks=400)
    + sysview_packet(4, 0x2000, ticks=400, bit=1 << 6)
    + sysview_packet(512, 0x3FFB1000, 24, 0x400D1000, 0x400D2000, ticks=4000)
    + sysview_packet(512, 0x3FFB2000, 101, 0x400D1100, 0, ticks=4000, bit=1 << 13)
    + sysview_packet(513, 0x3FFB1000, 0x400D3000, 0, ticks=4000)
)


def tracealyzer(
    events: Sequence[tuple[int, int, tuple[int, ...]]],
    *,
    version: int = 10,
    kernel: int = 0x1AA1,
    order: str = "<",
    clock: tuple[int, int, int] = (1, 1_000_000, 0),
    cores: int = 1,
    first: int = 1,
) -> bytes:
    """A stream of TraceRecorder: events are (number, time stamp, parameters); the clock is (type, Hz, period)."""
    kind, frequency, period = clock
    of_platform = struct.pack(f"{order}8sHBB", b"FreeRTOS", 0, 0, 1)
    if version >= 13:
        of_platform = struct.pack(f"{order}HBB8s", 0, 2, 1, b"FreeRTOS")
        frequency, period = period, frequency
    stream = struct.pack(f"{order}IHHIII", 0x50534600, version, kernel, 0, cores, 0) + of_platform
    stream += struct.pack(f"{order}7I", kind, frequency, period, 0, 1000, 0, 0)
    stream += struct.pack(f"{order}III", 2, 28, 3)
    for address, name in ((0x20000040, b"main"), (0x20000080, b"net")):
        stream += struct.pack(f"{order}IIIII28s", address, 1, 2, 3, 0, name)
    for count, (number, stamp, parameters) in enumerate(events, first):
        code = number | len(parameters) << 12
        stream += struct.pack(f"{order}HHI{len(parameters)}I", code, count & 0xFFFF, stamp, *parameters)
    return stream


TRACEALYZER_EVENTS: list[tuple[int, int, tuple[int, ...]]] = [
    (0x01, 0xFFFFFF00, (0x20000040,)),
    (0x38, 0xFFFFFF00, (0x20001000, 32)),
    (0x37, 0xFFFFFF10, (0x20000080, 3)),
    (0x38, 0x00000100, (0x20002000, 104)),
    (0xE9, 0x00000110, (0, 5000)),
    (0x90, 0x00000120, (1, 2, 3, 4)),
    (0x39, 0x00000200, (0x20001000, 32)),
    (0x39, 0x00000300, (0x20002000, 104)),
]


def bytehound(*records: tuple[int, int, int, int]) -> bytes:
    return b"".join(struct.pack("=4Q", *record) for record in records)


BOARD_MALLOC, BOARD_CALLOC, BOARD_OTHER, BOARD_WIDE = range(4)
BOARD_FREED, BOARD_RESIZING, BOARD_RESIZED, BOARD_THREAD = range(4)


def board_record(word: int, kind: int, size: int, ticks: int = 0) -> tuple[int, int]:
    """A record of app_trace_ring.h."""
    return word, kind | ticks << 2 | size << 12


BOARD_RECORDS = [
    board_record(0x20001000, BOARD_OTHER, BOARD_THREAD),
    board_record(0x20000100, BOARD_MALLOC, 24, 5),
    board_record(7 << 10 | 2, BOARD_WIDE, 0),  # 7 * 1024 ticks, 2 MiB
    board_record(0x20400000, BOARD_CALLOC, 15, 3),
    board_record(0x20000100, BOARD_OTHER, BOARD_RESIZING, 1),
    board_record(0x20002000, BOARD_OTHER, BOARD_THREAD),
    board_record(0x20000100, BOARD_MALLOC, 40, 1),  # in the midst of the realloc, which has freed it
    board_record(0x20000100, BOARD_OTHER, BOARD_RESIZED, 1),
    board_record(0x20000300, BOARD_MALLOC, 48),
    board_record(0x20000300, BOARD_OTHER, BOARD_RESIZED, 1),  # fails
    board_record(0, BOARD_MALLOC, 1000),
    board_record(0x20000300, BOARD_OTHER, BOARD_FREED),
    board_record(0x20000100, BOARD_OTHER, BOARD_FREED),
]


def board_lines(lost: int = 0, ticks_per_second: int = 1_000_000) -> str:
    """As app_trace_drain() hands them out, on a console that has other lines, too."""
    header = f"hw:{ticks_per_second:08x}{lost:08x}\n"
    return f"booting\n{header}" + "".join(f"[net] hw#{a:08x}{b:08x}\n" for a, b in BOARD_RECORDS) + header


BOARD_COMPACT = r"""hw:000003e800000000
hw!'$$$$&n$4$AxS72Gga&ckK5$]wk=WyTlL$'gSFe
[net] hw!'$($/KK)]$d$'sLWRGg`qcs51|$Bz+U
"""
"""What earlier hooks printed for six calls."""

BOARD_LOSSY = r"""hw:000003e800000007
hw!-$$$$+[a6b7$:<DMCI@`e@MGmSZ5m8aca'zA]3n{sp>Q%@1
hw!-$4$XxH$$$+O\^9pvX`7-.*80L<tUk+/.iYH8Dv
hw:000003e80000000e
"""
"""The same, of a ring of 16 records: 14 mallocs and a free of the last, 7 of which are lost; 13 frees and a malloc."""

BOARD_COUNTED = r"""hw:000003e80000000c40000000
hw*:$$$&$%DOb5)<sM{qkQgXW&@MGC_9bjA\CK2m`h+HoH'd%|Qy:~x])h:W;ymR@PcOA]3u+I'}%qR$\f/Qb$Sta7\}I}_;D(2n,&'d&$hv0jBBQQ_s@0EO
hw*)$L%<K?O5YM$$$'gKP>MCo:&kn?wNU/SzSDTg_=E2XE)}^l
"""
"""What tests/c/boards/traced/replay.c prints, with sites, of a ring of 32 records.

30 mallocs of 40 bytes and more and two frees, 12 of which are lost; two frees, and a realloc to 100 bytes."""


def board_dump(
    order: str = "<", before: int = 0, room: int = 16, lost: int = 0, more: Sequence[tuple[int, int]] = ()
) -> bytes:
    """A ring as a debugger dumps it, in which `before` records were written earlier and are gone; `more` come last."""
    ring = [(0, 0)] * room
    records = [*BOARD_RECORDS, *more]
    for number, record in enumerate(records, before):
        ring[number % room] = record
    header = (0x48577472, room, 1_000_000, lost, before, before + len(records), 0, 0)
    words = (*header, *(word for record in ring for word in record))
    return struct.pack(f"{order}{len(words)}I", *words)


LOGS: dict[str, str | bytes] = {
    "text": TEXT,
    "board": board_lines(),
    "valgrind": VALGRIND,
    "ltrace": LTRACE,
    "mtrace": MTRACE,
    "heaptrack": HEAPTRACK,
    "malloclab": MALLOCLAB,
    "rmm": RMM,
    "kmem": KMEM,
    "lttng": LTTNG,
    "perf": PERF,
    "bpftrace": BPFTRACE,
    "esp-idf": ESP_IDF,
    "nuttx": NUTTX,
    "sysview": SYSVIEW,
    "tracealyzer": tracealyzer(TRACEALYZER_EVENTS),
    "bytehound": bytehound((1, 0, 10, 24), (1, 1, 20, 100), (3, 0, 30, 48), (2, 1, 40, 0), (4, 0, 41, 0)),
    "calls-csv": "op,address,size\nmalloc,0x1000,24\nmalloc,0x2000,100\nfree,0x1000,24\n",
}

MORE_LOGS: dict[str, list[str | bytes]] = {
    "board": [board_dump(), board_dump(">", 12, lost=3), BOARD_COMPACT, BOARD_LOSSY, BOARD_COUNTED],
    "heaptrack": [INTERPRETED],
    "sysview": [SYSVIEW_OF_ESP, SYSVIEW[len(SYSVIEW_HEADER) :]],
    "tracealyzer": [
        tracealyzer(TRACEALYZER_EVENTS, version=14, order=">"),
        tracealyzer(TRACEALYZER_EVENTS, clock=(4, 1_000_000, 1000), cores=2),
    ],
}
"""Further logs of formats that have several forms."""
