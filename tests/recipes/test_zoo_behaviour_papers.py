"""Behaviour tables of the zoo's allocators of papers and textbooks and of our own, worked out by hand from their rules.

`behaviour.py` explains the tables. `ROOM` is what the arena has without control data and regions; where all memory is
one free block to begin with, and blocks have boundary tags, the last header of it marks the end.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from behaviour import play

from heapwright._recipes.zoo import catalogue as zoo

TABLES: dict[str, tuple[int, str]] = {
    # memory that nothing has reached is taken at multiples of the block's size, and the gap in front is free
    "binary-buddy": (256, """
        malloc a 10     |0:16:a|
        malloc b 40     |0:16:a|16:16:.|32:32:.|64:64:b|
        malloc c 12     |0:16:a|16:16:c|32:32:.|64:64:b|
        malloc d 4      |0:16:a|16:16:c|32:16:d|48:16:.|64:64:b|
        free c          |0:16:a|16:16:.|32:16:d|48:16:.|64:64:b|
        free d          |0:16:a|16:16:.|32:32:.|64:64:b|
        free a          |0:64:.|64:64:b|
        malloc e 60     |0:64:e|64:64:b|
        free b          |0:64:e|
        malloc f 100    |0:64:e|64:64:.|128:128:f|
        malloc g 61     refused |0:64:e|64:64:.|128:128:f|
        malloc h 60     |0:64:e|64:64:h|128:128:f|
    """),
    "variable-pool": (0, """
        malloc a 1500   |-524288:1536:a|
        malloc b 512    |-524288:1536:a|-522752:512:b|
        malloc c 513    |-524288:1536:a|-522752:512:b|-522240:1024:c|
        free b          |-524288:1536:a|-522752:512:.|-522240:1024:c|
        malloc d 600    |-524288:1536:a|-522752:512:.|-522240:1024:c|-521216:1024:d|
        free a          |-524288:2048:.|-522240:1024:c|-521216:1024:d|
        malloc e 1000   |-524288:1024:e|-523264:1024:.|-522240:1024:c|-521216:1024:d|
    """),
    "fixed-pool": (0, """
        malloc a 1      |-557056:2048:a|
        malloc b 2000   |-557056:2048:a|-555008:2048:b|
        free a          |-557056:2048:.|-555008:2048:b|
        malloc c 2049   refused |-557056:2048:.|-555008:2048:b|
        malloc d 2048   |-557056:2048:d|-555008:2048:b|
    """),
    # 5 bytes in front of payloads of whole words
    "heaplib": (200, """
        malloc a 10     |0:16:a|
        malloc b 40     |0:16:a|16:48:b|
        malloc c 3      |0:16:a|16:48:b|64:12:c|
        free b          |0:16:a|16:48:.|64:12:c|
        malloc d 27     |0:16:a|16:32:d|48:16:.|64:12:c|
        free c          |0:16:a|16:32:d|
        free a          |0:16:.|16:32:d|
        malloc e 12     |0:16:.|16:32:d|48:20:e|
    """),
    "st-memmgr-1": (100, """
        malloc a 10     |0:12:a|
        malloc b 1      |0:12:a|12:3:b|
        malloc c 5      |0:12:a|12:3:b|15:7:c|
        free a          |0:12:.|12:3:b|15:7:c|
        free b          |0:12:.|12:3:.|15:7:c|
        malloc d 11     |0:15:d|15:7:c|
    """),
    "st-memmgr-2": (100, """
        malloc a 10     |0:12:a|
        malloc b 1      |0:12:a|12:4:b|
        malloc c 5      |0:12:a|12:4:b|16:8:c|
        free a          |0:12:.|12:4:b|16:8:c|
        malloc d 6      |0:8:d|8:4:.|12:4:b|16:8:c|
    """),
    "st-memmgr-8": (100, """
        malloc a 10     |0:16:a|
        malloc b 1      |0:16:a|16:16:b|
        malloc c 6      |0:16:a|16:16:b|32:16:c|
        free b          |0:16:a|16:16:.|32:16:c|
        malloc d 14     |0:16:a|16:16:d|32:16:c|
    """),
    # 2 bytes in front; d's search merges what a and b left; c's 24 bytes and the 12 behind e are apart: no room for 45
    "st-memmgr": (100, """
        malloc a 10     |0:12:a|
        malloc b 1      |0:12:a|12:8:b|
        malloc c 20     |0:12:a|12:8:b|20:24:c|
        free a          |0:12:.|12:8:b|20:24:c|
        free b          |0:12:.|12:8:.|20:24:c|
        malloc d 12     |0:20:d|20:24:c|
        malloc e 40     |0:20:d|20:24:c|44:44:e|
        free c          |0:20:d|20:24:.|44:44:e|
        malloc f 45     refused |0:20:d|20:24:.|44:44:e|
    """),
    # 4 bytes in front, blocks by address; c ends at the top, and takes the 16 bytes ahead of it along
    "first-fit-fast-free": (200, """
        malloc a 10     |0:16:a|
        malloc b 40     |0:16:a|16:44:b|
        malloc c 8      |0:16:a|16:44:b|60:12:c|
        free a          |0:16:.|16:44:b|60:12:c|
        malloc d 4      |0:8:d|8:8:.|16:44:b|60:12:c|
        free b          |0:8:d|8:52:.|60:12:c|
        malloc e 30     |0:8:d|8:36:e|44:16:.|60:12:c|
        free c          |0:8:d|8:36:e|
        malloc f 100    |0:8:d|8:36:e|44:104:f|
        free e          |0:8:d|8:36:.|44:104:f|
    """),
    # 18 bytes take the hole of 24 rather than that of 44 further down
    "best-fit-fast-free": (200, """
        malloc a 40     |0:44:a|
        malloc b 8      |0:44:a|44:12:b|
        malloc c 20     |0:44:a|44:12:b|56:24:c|
        malloc d 8      |0:44:a|44:12:b|56:24:c|80:12:d|
        free a          |0:44:.|44:12:b|56:24:c|80:12:d|
        free c          |0:44:.|44:12:b|56:24:.|80:12:d|
        malloc e 18     |0:44:.|44:12:b|56:24:e|80:12:d|
        malloc f 18     |0:24:f|24:20:.|44:12:b|56:24:e|80:12:d|
        free b          |0:24:f|24:32:.|56:24:e|80:12:d|
        malloc g 1      |0:24:f|24:8:g|32:24:.|56:24:e|80:12:d|
    """),
    # a and b wait in their lists, and 14 bytes take a block for 16; c merges with d and serves h exactly
    "drr-proposed": (6400, """
        malloc a 16     |0:20:a|
        malloc b 1476   |0:20:a|20:1480:b|
        malloc c 40     |0:20:a|20:1480:b|1500:44:c|
        malloc d 100    |0:20:a|20:1480:b|1500:44:c|1544:104:d|
        malloc e 16     |0:20:a|20:1480:b|1500:44:c|1544:104:d|1648:20:e|
        free a          |0:20:~|20:1480:b|1500:44:c|1544:104:d|1648:20:e|
        free b          |0:20:~|20:1480:~|1500:44:c|1544:104:d|1648:20:e|
        free c          |0:20:~|20:1480:~|1500:44:.|1544:104:d|1648:20:e|
        malloc f 1476   |0:20:~|20:1480:f|1500:44:.|1544:104:d|1648:20:e|
        malloc g 14     |0:20:g|20:1480:f|1500:44:.|1544:104:d|1648:20:e|
        free d          |0:20:g|20:1480:f|1500:148:.|1648:20:e|
        malloc h 144    |0:20:g|20:1480:f|1500:148:h|1648:20:e|
    """),
    # 66 and 1514 bytes have blocks of 72 and 1520
    "easyport-proposed": (6400, """
        malloc a 66     |0:72:a|
        malloc b 1514   |0:72:a|72:1520:b|
        malloc c 40     |0:72:a|72:1520:b|1592:44:c|
        malloc d 100    |0:72:a|72:1520:b|1592:44:c|1636:104:d|
        malloc e 66     |0:72:a|72:1520:b|1592:44:c|1636:104:d|1740:72:e|
        free a          |0:72:~|72:1520:b|1592:44:c|1636:104:d|1740:72:e|
        free b          |0:72:~|72:1520:~|1592:44:c|1636:104:d|1740:72:e|
        free c          |0:72:~|72:1520:~|1592:44:.|1636:104:d|1740:72:e|
        malloc f 1513   |0:72:~|72:1520:f|1592:44:.|1636:104:d|1740:72:e|
        malloc g 66     |0:72:g|72:1520:f|1592:44:.|1636:104:d|1740:72:e|
        free d          |0:72:g|72:1520:f|1592:148:.|1740:72:e|
        malloc h 146    |0:72:g|72:1520:f|1592:148:.|1740:72:e|1812:152:h|
    """),
    # blocks of 12, 16 and 24, each with a list; d ends at the top, which takes it back, and so does h with g
    "url-proposed": (400, """
        malloc a 8      |0:12:a|
        malloc b 20     |0:12:a|12:24:b|
        malloc c 11     |0:12:a|12:24:b|36:16:c|
        malloc d 30     |0:12:a|12:24:b|36:16:c|52:36:d|
        free a          |0:12:~|12:24:b|36:16:c|52:36:d|
        free b          |0:12:~|12:24:~|36:16:c|52:36:d|
        free d          |0:12:~|12:24:~|36:16:c|
        malloc e 11     |0:12:~|12:24:~|36:16:c|52:16:e|
        malloc f 20     |0:12:~|12:24:f|36:16:c|52:16:e|
        malloc g 34     |0:12:~|12:24:f|36:16:c|52:16:e|68:40:g|
        malloc h 30     |0:12:~|12:24:f|36:16:c|52:16:e|68:40:g|108:36:h|
        free g          |0:12:~|12:24:f|36:16:c|52:16:e|68:40:.|108:36:h|
        free h          |0:12:~|12:24:f|36:16:c|52:16:e|
    """),
    # classes from the upper end, 8 bytes in front, each class searched from its first block; 1600 bytes go below
    "wifi-special-pools": (8000, """
        malloc a 40     |7952:48:a|
        malloc b 1500   |6444:1508:b|7952:48:a|
        malloc c 41     |6372:72:c|6444:1508:b|7952:48:a|
        malloc d 600    |5340:1032:d|6372:72:c|6444:1508:b|7952:48:a|
        free a          |5340:1032:d|6372:72:c|6444:1508:b|7952:48:.|
        free b          |5340:1032:d|6372:72:c|6444:1508:.|7952:48:.|
        malloc e 30     |5340:1032:d|6372:72:c|6444:1508:.|7952:48:e|
        malloc f 1025   |5340:1032:d|6372:72:c|6444:1508:f|7952:48:e|
        malloc g 1600   |0:1608:g|5340:1032:d|6372:72:c|6444:1508:f|7952:48:e|
        free g          |5340:1032:d|6372:72:c|6444:1508:f|7952:48:e|
        malloc h 40     |5292:48:h|5340:1032:d|6372:72:c|6444:1508:f|7952:48:e|
    """),
    # 24 bytes take the hole of 32 rather than those of 24 and 40; 30 take the next larger one
    "exact-bins": (400, """
        malloc a 20     |0:24:a|
        malloc b 8      |0:24:a|24:16:b|
        malloc c 36     |0:24:a|24:16:b|40:40:c|
        malloc d 8      |0:24:a|24:16:b|40:40:c|80:16:d|
        malloc e 28     |0:24:a|24:16:b|40:40:c|80:16:d|96:32:e|
        malloc f 8      |0:24:a|24:16:b|40:40:c|80:16:d|96:32:e|128:16:f|
        free a          |0:24:.|24:16:b|40:40:c|80:16:d|96:32:e|128:16:f|
        free c          |0:24:.|24:16:b|40:40:.|80:16:d|96:32:e|128:16:f|
        free e          |0:24:.|24:16:b|40:40:.|80:16:d|96:32:.|128:16:f|
        malloc g 24     |0:24:.|24:16:b|40:40:.|80:16:d|96:32:g|128:16:f|
        malloc h 30     |0:24:.|24:16:b|40:40:h|80:16:d|96:32:g|128:16:f|
        free b          |0:40:.|40:40:h|80:16:d|96:32:g|128:16:f|
    """),
    # what a leaves after e is the last remainder and serves f; c's 28 bytes are in the bin behind g's, looked at
    # first; i looks two bins further before the last remainder
    "victim-bins": (500, """
        malloc a 100    |0:104:a|
        malloc b 8      |0:104:a|104:16:b|
        malloc c 24     |0:104:a|104:16:b|120:28:c|
        malloc d 8      |0:104:a|104:16:b|120:28:c|148:16:d|
        free a          |0:104:.|104:16:b|120:28:c|148:16:d|
        malloc e 20     |0:24:e|24:80:v|104:16:b|120:28:c|148:16:d|
        malloc f 20     |0:24:e|24:24:f|48:56:v|104:16:b|120:28:c|148:16:d|
        free c          |0:24:e|24:24:f|48:56:v|104:16:b|120:28:.|148:16:d|
        malloc g 20     |0:24:e|24:24:f|48:56:v|104:16:b|120:28:g|148:16:d|
        malloc h 50     |0:24:e|24:24:f|48:56:h|104:16:b|120:28:g|148:16:d|
        free e          |0:24:.|24:24:f|48:56:h|104:16:b|120:28:g|148:16:d|
        free b          |0:24:.|24:24:f|48:56:h|104:16:v|120:28:g|148:16:d|
        malloc i 12     |0:24:i|24:24:f|48:56:h|104:16:v|120:28:g|148:16:d|
    """),
    # 70 and 69 bytes share a list, that the turn of two lists a call reaches at f; b is next to what came back and does
    # not wait, d does; g is cut from it, the rest is the last remainder, and what is freed next to that joins it
    "all-round": (6000, """
        malloc a 70     |0:80:a|
        malloc b 300    |0:80:a|80:320:b|
        malloc c 70     |0:80:a|80:320:b|400:80:c|
        malloc d 300    |0:80:a|80:320:b|400:80:c|480:320:d|
        free a          |0:80:~|80:320:b|400:80:c|480:320:d|
        malloc e 69     |0:80:e|80:320:b|400:80:c|480:320:d|
        free e          |0:80:~|80:320:b|400:80:c|480:320:d|
        malloc f 1600   |0:80:.|80:320:b|400:80:c|480:320:d|800:1608:f|
        free b          |0:400:.|400:80:c|480:320:d|800:1608:f|
        malloc g 40     |0:48:g|48:352:v|400:80:c|480:320:d|800:1608:f|
        free d          |0:48:g|48:352:v|400:80:c|480:320:~|800:1608:f|
        malloc h 8      |0:48:g|48:16:h|64:336:v|400:80:c|480:320:~|800:1608:f|
        free h          |0:48:g|48:352:v|400:80:c|480:320:~|800:1608:f|
        free c          |0:48:g|48:432:v|480:320:~|800:1608:f|
        malloc i 290    |0:48:g|48:432:v|480:320:i|800:1608:f|
    """),
    # as all-round, but b and c wait next to free memory, and no rest is kept apart; i empties the lists in vain
    "fast": (6000, """
        malloc a 70     |0:80:a|
        malloc b 300    |0:80:a|80:320:b|
        malloc c 70     |0:80:a|80:320:b|400:80:c|
        malloc d 300    |0:80:a|80:320:b|400:80:c|480:320:d|
        free a          |0:80:~|80:320:b|400:80:c|480:320:d|
        malloc e 69     |0:80:e|80:320:b|400:80:c|480:320:d|
        free e          |0:80:~|80:320:b|400:80:c|480:320:d|
        free b          |0:80:~|80:320:~|400:80:c|480:320:d|
        malloc f 1600   |0:80:.|80:320:~|400:80:c|480:320:d|800:1608:f|
        free c          |0:80:.|80:320:~|400:80:~|480:320:d|800:1608:f|
        malloc g 290    |0:80:.|80:320:g|400:80:~|480:320:d|800:1608:f|
        malloc h 40     |0:48:h|48:32:.|80:320:g|400:80:~|480:320:d|800:1608:f|
        free g          |0:48:h|48:32:.|80:320:~|400:80:~|480:320:d|800:1608:f|
        malloc i 6000   refused |0:48:h|48:432:.|480:320:d|800:1608:f|
    """),
    # e is cut from a, as c is too small; f takes all of c, whose rest would be no block; g is cut from the rest of a
    "small": (700, """
        malloc a 200    |0:208:a|
        malloc b 20     |0:208:a|208:24:b|
        malloc c 36     |0:208:a|208:24:b|232:40:c|
        malloc d 20     |0:208:a|208:24:b|232:40:c|272:24:d|
        free a          |0:208:.|208:24:b|232:40:c|272:24:d|
        free c          |0:208:.|208:24:b|232:40:.|272:24:d|
        malloc e 60     |0:64:e|64:144:.|208:24:b|232:40:.|272:24:d|
        malloc f 28     |0:64:e|64:144:.|208:24:b|232:40:f|272:24:d|
        malloc g 20     |0:64:e|64:24:g|88:120:.|208:24:b|232:40:f|272:24:d|
        free b          |0:64:e|64:24:g|88:144:.|232:40:f|272:24:d|
        free e          |0:64:.|64:24:g|88:144:.|232:40:f|272:24:d|
        free g          |0:232:.|232:40:f|272:24:d|
    """),
    # b waits in a list, where a does not join it, and serves f; what a leaves after e serves g as the last remainder; h
    # takes c from the bin of its size; i empties the lists, and finds nothing
    "small-lists": (700, """
        malloc a 200    |0:208:a|
        malloc b 20     |0:208:a|208:24:b|
        malloc c 100    |0:208:a|208:24:b|232:104:c|
        malloc d 20     |0:208:a|208:24:b|232:104:c|336:24:d|
        free b          |0:208:a|208:24:~|232:104:c|336:24:d|
        free a          |0:208:.|208:24:~|232:104:c|336:24:d|
        malloc e 60     |0:64:e|64:144:v|208:24:~|232:104:c|336:24:d|
        malloc f 20     |0:64:e|64:144:v|208:24:f|232:104:c|336:24:d|
        malloc g 20     |0:64:e|64:24:g|88:120:v|208:24:f|232:104:c|336:24:d|
        free c          |0:64:e|64:24:g|88:120:v|208:24:f|232:104:.|336:24:d|
        malloc h 100    |0:64:e|64:24:g|88:120:v|208:24:f|232:104:h|336:24:d|
        free e          |0:64:~|64:24:g|88:120:v|208:24:f|232:104:h|336:24:d|
        free h          |0:64:~|64:24:g|88:120:v|208:24:f|232:104:.|336:24:d|
        malloc i 400    refused |0:64:.|64:24:g|88:120:v|208:24:f|232:104:.|336:24:d|
    """),
    # 4 bytes in front; d, e and f find no room below the high-water mark, so what is live slides down first
    "st-compact-memmgr": (100, """
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
    """),
}  # fmt: skip
"""Name -> room in bytes, calls and blocks."""

TABLES |= {f"{fit}-fit-slow-free": TABLES[f"{fit}-fit-fast-free"] for fit in ("first", "best")}
"""Only the way to the block ahead differs."""


@pytest.mark.parametrize("name", TABLES)
def test_behaviour(script: Path, tmp_path: Path, name: str) -> None:
    room, table = TABLES[name]
    play(script, tmp_path, zoo.load(name), table, room)
