"""Behaviour tables of the zoo's allocators of systems and libraries, worked out by hand from the rules that they state.

`behaviour.py` explains the tables. `ROOM` is what the arena has without control data and regions; where all memory is
one free block to begin with, and blocks have boundary tags, the last header of it marks the end.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from behaviour import play
from test_zoo_behaviour_papers import TABLES as OF_PAPERS

from heapwright._recipes.zoo import catalogue as zoo

TABLES: dict[str, tuple[int, str]] = {
    # blocks of 8-byte units with 8 in front; a rest of up to 16 bytes stays with the block
    "freertos-heap4": (200, """
        malloc a 10     |0:24:a|24:176:.|
        malloc b 40     |0:24:a|24:48:b|72:128:.|
        malloc c 8      |0:24:a|24:48:b|72:16:c|88:112:.|
        malloc d 20     |0:24:a|24:48:b|72:16:c|88:32:d|120:80:.|
        free b          |0:24:a|24:48:.|72:16:c|88:32:d|120:80:.|
        malloc e 24     |0:24:a|24:48:e|72:16:c|88:32:d|120:80:.|
        free a          |0:24:.|24:48:e|72:16:c|88:32:d|120:80:.|
        free c          |0:24:.|24:48:e|72:16:.|88:32:d|120:80:.|
        malloc f 1      |0:24:f|24:48:e|72:16:.|88:32:d|120:80:.|
        free e          |0:24:f|24:64:.|88:32:d|120:80:.|
        free d          |0:24:f|24:176:.|
        malloc g 170    refused |0:24:f|24:176:.|
        malloc g 160    |0:24:f|24:176:g|
    """),
    # in order of size, never merged
    "freertos-heap2": (200, """
        malloc a 10     |0:24:a|24:176:.|
        malloc b 40     |0:24:a|24:48:b|72:128:.|
        malloc c 20     |0:24:a|24:48:b|72:32:c|104:96:.|
        free a          |0:24:.|24:48:b|72:32:c|104:96:.|
        free b          |0:24:.|24:48:.|72:32:c|104:96:.|
        malloc d 30     |0:24:.|24:48:d|72:32:c|104:96:.|
        malloc e 1      |0:24:e|24:48:d|72:32:c|104:96:.|
        malloc f 50     |0:24:e|24:48:d|72:32:c|104:64:f|168:32:.|
        free f          |0:24:e|24:48:d|72:32:c|104:64:.|168:32:.|
        malloc g 70     refused |0:24:e|24:48:d|72:32:c|104:64:.|168:32:.|
        malloc h 10     |0:24:e|24:48:d|72:32:c|104:64:.|168:32:h|
    """),
    # payloads of at least 12 bytes, 8 in front; a rest below 20 bytes stays with the block, unless a free one follows
    "lwip-mem": (208, """
        malloc a 10     |0:20:a|20:180:.|
        malloc b 40     |0:20:a|20:48:b|68:132:.|
        malloc c 1      |0:20:a|20:48:b|68:20:c|88:112:.|
        malloc d 20     |0:20:a|20:48:b|68:20:c|88:28:d|116:84:.|
        free b          |0:20:a|20:48:.|68:20:c|88:28:d|116:84:.|
        malloc e 21     |0:20:a|20:48:e|68:20:c|88:28:d|116:84:.|
        free e          |0:20:a|20:48:.|68:20:c|88:28:d|116:84:.|
        malloc f 20     |0:20:a|20:28:f|48:20:.|68:20:c|88:28:d|116:84:.|
        free d          |0:20:a|20:28:f|48:20:.|68:20:c|88:112:.|
        free c          |0:20:a|20:28:f|48:152:.|
        malloc g 144    |0:20:a|20:28:f|48:152:g|
        malloc h 1      refused |0:20:a|20:28:f|48:152:g|
        realloc g 120   |0:20:a|20:28:f|48:128:g|176:24:.|
        realloc g 115   |0:20:a|20:28:f|48:124:g|172:28:.|
        realloc f 13    |0:20:a|20:28:f|48:124:g|172:28:.|
        realloc a 13    |0:20:.|20:28:f|48:124:g|172:28:a|
    """),
    # the same with 12 bytes of header: what is split off has at least 24, so e's block stays whole
    "lwip-mem-large": (212, """
        malloc a 10     |0:24:a|24:176:.|
        malloc b 40     |0:24:a|24:52:b|76:124:.|
        malloc c 1      |0:24:a|24:52:b|76:24:c|100:100:.|
        free b          |0:24:a|24:52:.|76:24:c|100:100:.|
        malloc e 20     |0:24:a|24:52:e|76:24:c|100:100:.|
        free e          |0:24:a|24:52:.|76:24:c|100:100:.|
        malloc f 16     |0:24:a|24:28:f|52:24:.|76:24:c|100:100:.|
        free c          |0:24:a|24:28:f|52:148:.|
        malloc g 136    |0:24:a|24:28:f|52:148:g|
        malloc h 1      refused |0:24:a|24:28:f|52:148:g|
    """),
    # e's block has taken in 48 bytes and is large enough, so the 12 behind stay; f's takes them
    "threadx-byte-pool": (200, """
        malloc a 10     |0:20:a|20:180:.|
        malloc b 40     |0:20:a|20:48:b|68:132:.|
        malloc c 1      |0:20:a|20:48:b|68:12:c|80:120:.|
        malloc d 20     |0:20:a|20:48:b|68:12:c|80:28:d|108:92:.|
        free b          |0:20:a|20:48:.|68:12:c|80:28:d|108:92:.|
        free c          |0:20:a|20:48:.|68:12:.|80:28:d|108:92:.|
        free a          |0:20:.|20:48:.|68:12:.|80:28:d|108:92:.|
        malloc e 30     |0:40:e|40:28:.|68:12:.|80:28:d|108:92:.|
        malloc f 24     |0:40:e|40:40:f|80:28:d|108:92:.|
        free d          |0:40:e|40:40:f|80:28:.|108:92:.|
        malloc g 100    |0:40:e|40:40:f|80:120:g|
    """),
    # f takes 72 bytes, first in its ring, though the 64 freed later would fit exactly; g does not fit into 40
    "zephyr-sys-heap": (204, """
        malloc a 4      |0:8:a|8:192:.|
        malloc b 30     |0:8:a|8:40:b|48:152:.|
        malloc c 4      |0:8:a|8:40:b|48:8:c|56:144:.|
        malloc d 60     |0:8:a|8:40:b|48:8:c|56:64:d|120:80:.|
        malloc e 4      |0:8:a|8:40:b|48:8:c|56:64:d|120:8:e|128:72:.|
        free b          |0:8:a|8:40:.|48:8:c|56:64:d|120:8:e|128:72:.|
        free d          |0:8:a|8:40:.|48:8:c|56:64:.|120:8:e|128:72:.|
        malloc f 60     |0:8:a|8:40:.|48:8:c|56:64:.|120:8:e|128:64:f|192:8:.|
        malloc g 40     |0:8:a|8:40:.|48:8:c|56:48:g|104:16:.|120:8:e|128:64:f|192:8:.|
        malloc h 4      |0:8:a|8:40:.|48:8:c|56:48:g|104:16:.|120:8:e|128:64:f|192:8:h|
        free c          |0:8:a|8:48:.|56:48:g|104:16:.|120:8:e|128:64:f|192:8:h|
        free g          |0:8:a|8:112:.|120:8:e|128:64:f|192:8:h|
    """),
    # 1000 bytes are looked for from 1008 bytes up, so the hole of just this size is passed by; 992 is a list's bound
    "tlsf": (3004, """
        malloc a 1000   |0:1004:a|1004:1996:.|
        malloc b 16     |0:1004:a|1004:20:b|1024:1976:.|
        malloc c 1004   |0:1004:a|1004:20:b|1024:1008:c|2032:968:.|
        malloc d 16     |0:1004:a|1004:20:b|1024:1008:c|2032:20:d|2052:948:.|
        free a          |0:1004:.|1004:20:b|1024:1008:c|2032:20:d|2052:948:.|
        malloc e 1000   refused |0:1004:.|1004:20:b|1024:1008:c|2032:20:d|2052:948:.|
        malloc e 990    |0:1004:e|1004:20:b|1024:1008:c|2032:20:d|2052:948:.|
        free c          |0:1004:e|1004:20:b|1024:1008:.|2032:20:d|2052:948:.|
        malloc f 500    |0:1004:e|1004:20:b|1024:1008:.|2032:20:d|2052:504:f|2556:444:.|
        free b          |0:1004:e|1004:1028:.|2032:20:d|2052:504:f|2556:444:.|
        malloc g 1024   |0:1004:e|1004:1028:g|2032:20:d|2052:504:f|2556:444:.|
        free d          |0:1004:e|1004:1028:g|2032:20:.|2052:504:f|2556:444:.|
        malloc h 16     |0:1004:e|1004:1028:g|2032:20:h|2052:504:f|2556:444:.|
    """),
    # 1000 bytes get the 1024 that they are rounded up to, so the hole serves them again; i's block stays whole
    "espressif-tlsf": (3004, """
        malloc a 1000   |0:1028:a|1028:1972:.|
        malloc b 16     |0:1028:a|1028:20:b|1048:1952:.|
        free a          |0:1028:.|1028:20:b|1048:1952:.|
        malloc c 1000   |0:1028:c|1028:20:b|1048:1952:.|
        malloc d 300    |0:1028:c|1028:20:b|1048:308:d|1356:1644:.|
        malloc e 257    |0:1028:c|1028:20:b|1048:308:d|1356:276:e|1632:1368:.|
        free c          |0:1028:.|1028:20:b|1048:308:d|1356:276:e|1632:1368:.|
        malloc f 1030   |0:1028:.|1028:20:b|1048:308:d|1356:276:e|1632:1092:f|2724:276:.|
        malloc g 960    |0:964:g|964:64:.|1028:20:b|1048:308:d|1356:276:e|1632:1092:f|2724:276:.|
        malloc h 1000   refused |0:964:g|964:64:.|1028:20:b|1048:308:d|1356:276:e|1632:1092:f|2724:276:.|
        free b          |0:964:g|964:84:.|1048:308:d|1356:276:e|1632:1092:f|2724:276:.|
        malloc i 65     |0:964:g|964:84:i|1048:308:d|1356:276:e|1632:1092:f|2724:276:.|
    """),
    # twice as many lists an octave, so 1000 bytes get 1008; 113 are one more than the hole of b has
    "espressif-tlsf-large": (3004, """
        malloc a 1000   |0:1012:a|1012:1988:.|
        malloc b 16     |0:1012:a|1012:20:b|1032:1968:.|
        free a          |0:1012:.|1012:20:b|1032:1968:.|
        malloc c 1005   |0:1012:c|1012:20:b|1032:1968:.|
        malloc d 257    |0:1012:c|1012:20:b|1032:268:d|1300:1700:.|
        free c          |0:1012:.|1012:20:b|1032:268:d|1300:1700:.|
        malloc e 1009   |0:1012:.|1012:20:b|1032:268:d|1300:1028:e|2328:672:.|
        malloc f 900    |0:916:f|916:96:.|1012:20:b|1032:268:d|1300:1028:e|2328:672:.|
        free b          |0:916:f|916:116:.|1032:268:d|1300:1028:e|2328:672:.|
        malloc g 113    |0:916:f|916:116:.|1032:268:d|1300:1028:e|2328:120:g|2448:552:.|
        malloc h 112    |0:916:f|916:116:h|1032:268:d|1300:1028:e|2328:120:g|2448:552:.|
    """),
    # the list of 64 to 127 bytes has the smaller hole first; d grows into the hole ahead, the smaller one, then
    # into the one behind; a free chunk behind gets 8 bytes of b
    "nuttx-mm": (404, """
        malloc a 100    |0:104:a|104:296:.|
        malloc b 4      |0:104:a|104:16:b|120:280:.|
        malloc c 70     |0:104:a|104:16:b|120:80:c|200:200:.|
        malloc d 28     |0:104:a|104:16:b|120:80:c|200:32:d|232:168:.|
        free a          |0:104:.|104:16:b|120:80:c|200:32:d|232:168:.|
        free c          |0:104:.|104:16:b|120:80:.|200:32:d|232:168:.|
        malloc e 65     |0:104:.|104:16:b|120:80:e|200:32:d|232:168:.|
        realloc e 28    |0:104:.|104:16:b|120:32:e|152:48:.|200:32:d|232:168:.|
        realloc d 36    |0:104:.|104:16:b|120:32:e|152:40:.|192:40:d|232:168:.|
        realloc d 76    |0:104:.|104:16:b|120:32:e|152:80:d|232:168:.|
        realloc d 84    |0:104:.|104:16:b|120:32:e|152:88:d|240:160:.|
        realloc d 76    |0:104:.|104:16:b|120:32:e|152:80:d|232:168:.|
        realloc b 100   |0:16:.|16:104:b|120:32:e|152:80:d|232:168:.|
        realloc b 112   |0:120:b|120:32:e|152:80:d|232:168:.|
        realloc b 100   |0:104:b|104:16:.|120:32:e|152:80:d|232:168:.|
        realloc b 96    |0:104:b|104:16:.|120:32:e|152:80:d|232:168:.|
        realloc b 92    |0:96:b|96:24:.|120:32:e|152:80:d|232:168:.|
    """),
    # as lwip-mem with 16 in front; g, whose block stays whole, moves where it could give back 24 bytes; a moves, too
    "rt-thread-small-mem": (416, """
        malloc a 10     |0:32:a|32:368:.|
        malloc b 40     |0:32:a|32:56:b|88:312:.|
        malloc c 1      |0:32:a|32:56:b|88:32:c|120:280:.|
        free b          |0:32:a|32:56:.|88:32:c|120:280:.|
        malloc g 16     |0:32:a|32:56:g|88:32:c|120:280:.|
        realloc g 15    |0:32:a|32:56:.|88:32:c|120:32:g|152:248:.|
        realloc a 16    |0:32:a|32:56:.|88:32:c|120:32:g|152:248:.|
        realloc g 80    |0:32:a|32:56:.|88:32:c|120:32:.|152:96:g|248:152:.|
        free c          |0:32:a|32:120:.|152:96:g|248:152:.|
        realloc g 40    |0:32:a|32:120:.|152:56:g|208:192:.|
        realloc g 16    |0:32:a|32:32:g|64:336:.|
        realloc a 8     |0:32:.|32:32:g|64:32:a|96:304:.|
    """),
    # 24 of header; a rest and what is freed come first, so g comes from where d was; the block of b keeps the last
    # place; a realloc leaves more than 40 bytes, or all that f has
    "rt-thread-memheap": (416, """
        malloc a 60     |0:88:a|88:312:.|
        malloc b 16     |0:88:a|88:40:b|128:272:.|
        malloc c 60     |0:88:a|88:40:b|128:88:c|216:184:.|
        malloc d 1      |0:88:a|88:40:b|128:88:c|216:40:d|256:144:.|
        free a          |0:88:.|88:40:b|128:88:c|216:40:d|256:144:.|
        free c          |0:88:.|88:40:b|128:88:.|216:40:d|256:144:.|
        malloc e 30     |0:88:.|88:40:b|128:88:e|216:40:d|256:144:.|
        malloc f 16     |0:40:f|40:48:.|88:40:b|128:88:e|216:40:d|256:144:.|
        free d          |0:40:f|40:48:.|88:40:b|128:88:e|216:184:.|
        malloc g 16     |0:40:f|40:48:.|88:40:b|128:88:e|216:40:g|256:144:.|
        free e          |0:40:f|40:48:.|88:40:b|128:88:.|216:40:g|256:144:.|
        free b          |0:40:f|40:176:.|216:40:g|256:144:.|
        malloc h 16     |0:40:f|40:176:.|216:40:g|256:40:h|296:104:.|
        realloc f 56    |0:80:f|80:136:.|216:40:g|256:40:h|296:104:.|
        realloc f 16    |0:80:f|80:136:.|216:40:g|256:40:h|296:104:.|
        realloc f 64    |0:88:f|88:128:.|216:40:g|256:40:h|296:104:.|
        realloc f 16    |0:40:f|40:176:.|216:40:g|256:40:h|296:104:.|
    """),
    # 32 of header; the block of d takes the last place, that of the one behind it, and later that of b
    "mbedtls-buffer": (416, """
        malloc a 60     |0:92:a|92:308:.|
        malloc b 4      |0:92:a|92:36:b|128:272:.|
        malloc c 60     |0:92:a|92:36:b|128:92:c|220:180:.|
        malloc d 4      |0:92:a|92:36:b|128:92:c|220:36:d|256:144:.|
        free a          |0:92:.|92:36:b|128:92:c|220:36:d|256:144:.|
        free c          |0:92:.|92:36:b|128:92:.|220:36:d|256:144:.|
        free d          |0:92:.|92:36:b|128:272:.|
        malloc e 24     |0:56:e|56:36:.|92:36:b|128:272:.|
        malloc f 1      |0:56:e|56:36:f|92:36:b|128:272:.|
        free e          |0:56:.|56:36:f|92:36:b|128:272:.|
        free b          |0:56:.|56:36:f|92:308:.|
        malloc g 24     |0:56:g|56:36:f|92:308:.|
        free g          |0:56:.|56:36:f|92:308:.|
        free f          |0:400:.|
    """),
    # as umm-malloc, but c moves down where it stays as large, and d where it shrinks
    "esp8266-umm": (204, """
        malloc a 4      |0:8:a|8:192:.|
        malloc b 30     |0:8:a|8:40:b|48:152:.|
        malloc c 5      |0:8:a|8:40:b|48:16:c|64:136:.|
        malloc d 36     |0:8:a|8:40:b|48:16:c|64:40:d|104:96:.|
        malloc e 4      |0:8:a|8:40:b|48:16:c|64:40:d|104:8:e|112:88:.|
        free b          |0:8:a|8:40:.|48:16:c|64:40:d|104:8:e|112:88:.|
        realloc c 5     |0:8:a|8:16:c|24:40:.|64:40:d|104:8:e|112:88:.|
        realloc d 20    |0:8:a|8:16:c|24:24:d|48:56:.|104:8:e|112:88:.|
        realloc e 60    |0:8:a|8:16:c|24:24:d|48:64:e|112:88:.|
        realloc e 100   |0:8:a|8:16:c|24:24:d|48:104:e|152:48:.|
        free d          |0:8:a|8:16:c|24:24:.|48:104:e|152:48:.|
        realloc e 164   |0:8:a|8:16:c|24:168:e|192:8:.|
    """),
    # powers of two with 16 bytes in front; rests are multiples of 32
    "half-fit": (2064, """
        malloc a 1      |0:32:a|32:2016:.|
        malloc b 17     |0:32:a|32:64:b|96:1952:.|
        malloc c 100    |0:32:a|32:64:b|96:128:c|224:1824:.|
        malloc d 500    |0:32:a|32:64:b|96:128:c|224:1024:d|1248:800:.|
        malloc e 300    |0:32:a|32:64:b|96:128:c|224:1024:d|1248:512:e|1760:288:.|
        free c          |0:32:a|32:64:b|96:128:.|224:1024:d|1248:512:e|1760:288:.|
        malloc f 17     |0:32:a|32:64:b|96:64:f|160:64:.|224:1024:d|1248:512:e|1760:288:.|
        malloc g 200    |0:32:a|32:64:b|96:64:f|160:64:.|224:1024:d|1248:512:e|1760:256:g|2016:32:.|
        free b          |0:32:a|32:64:.|96:64:f|160:64:.|224:1024:d|1248:512:e|1760:256:g|2016:32:.|
        free f          |0:32:a|32:192:.|224:1024:d|1248:512:e|1760:256:g|2016:32:.|
        malloc h 112    |0:32:a|32:128:h|160:64:.|224:1024:d|1248:512:e|1760:256:g|2016:32:.|
        malloc i 240    refused |0:32:a|32:128:h|160:64:.|224:1024:d|1248:512:e|1760:256:g|2016:32:.|
    """),
    # of the two holes of 40 bytes the one freed last comes first; the merged one keeps c's place
    "umm-malloc": (204, """
        malloc a 4      |0:8:a|8:192:.|
        malloc b 30     |0:8:a|8:40:b|48:152:.|
        malloc c 5      |0:8:a|8:40:b|48:16:c|64:136:.|
        malloc d 36     |0:8:a|8:40:b|48:16:c|64:40:d|104:96:.|
        malloc e 4      |0:8:a|8:40:b|48:16:c|64:40:d|104:8:e|112:88:.|
        free b          |0:8:a|8:40:.|48:16:c|64:40:d|104:8:e|112:88:.|
        free d          |0:8:a|8:40:.|48:16:c|64:40:.|104:8:e|112:88:.|
        malloc f 28     |0:8:a|8:40:.|48:16:c|64:32:f|96:8:.|104:8:e|112:88:.|
        malloc g 36     |0:8:a|8:40:g|48:16:c|64:32:f|96:8:.|104:8:e|112:88:.|
        free c          |0:8:a|8:40:g|48:16:.|64:32:f|96:8:.|104:8:e|112:88:.|
        free f          |0:8:a|8:40:g|48:56:.|104:8:e|112:88:.|
        malloc h 52     |0:8:a|8:40:g|48:56:h|104:8:e|112:88:.|
    """),
    # the pool gives 128 bytes at least, and refuses with 64 left; f comes from where a was freed, not from the start
    "memmgr": (400, """
        malloc a 10     |0:104:.|104:24:a|
        malloc b 40     |0:56:.|56:48:b|104:24:a|
        malloc c 48     |0:56:c|56:48:b|104:24:a|
        malloc d 200    |0:56:c|56:48:b|104:24:a|128:208:d|
        malloc e 8      refused |0:56:c|56:48:b|104:24:a|128:208:d|
        free b          |0:56:c|56:48:.|104:24:a|128:208:d|
        malloc e 8      |0:56:c|56:32:.|88:16:e|104:24:a|128:208:d|
        free a          |0:56:c|56:32:.|88:16:e|104:24:.|128:208:d|
        malloc f 8      |0:56:c|56:32:.|88:16:e|104:8:.|112:16:f|128:208:d|
        free f          |0:56:c|56:32:.|88:16:e|104:24:.|128:208:d|
        free c          |0:88:.|88:16:e|104:24:.|128:208:d|
        malloc g 24     |0:56:.|56:32:g|88:16:e|104:24:.|128:208:d|
    """),
    # 12 bytes in front; the heap fills from its end
    "mantisos": (200, """
        malloc a 10     |0:176:.|176:24:a|
        malloc b 40     |0:124:.|124:52:b|176:24:a|
        malloc c 20     |0:92:.|92:32:c|124:52:b|176:24:a|
        free b          |0:92:.|92:32:c|124:52:.|176:24:a|
        malloc d 30     |0:92:.|92:32:c|124:52:d|176:24:a|
        malloc e 20     |0:60:.|60:32:e|92:32:c|124:52:d|176:24:a|
        free c          |0:60:.|60:32:e|92:32:.|124:52:d|176:24:a|
        malloc f 4      |0:60:.|60:32:e|92:16:.|108:16:f|124:52:d|176:24:a|
        free f          |0:60:.|60:32:e|92:32:.|124:52:d|176:24:a|
        free d          |0:60:.|60:32:e|92:84:.|176:24:a|
        free e          |0:176:.|176:24:a|
    """),
    "nano-qplus": (100, """
        malloc a 5      |0:88:.|88:12:a|
        malloc b 1      |0:80:.|80:8:b|88:12:a|
        free a          |0:80:.|80:8:b|88:12:.|
        malloc c 1      |0:80:.|80:8:b|88:12:c|
        free b          |0:88:.|88:12:c|
        malloc d 82     |0:88:d|88:12:c|
        malloc e 1      refused |0:88:d|88:12:c|
    """),
    # a fifth request of 128 bytes fails though 1 KB is free
    "sos": (0, """
        malloc a 128    |-512:128:a|
        malloc b 128    |-512:128:a|-384:128:b|
        malloc c 128    |-512:128:a|-384:128:b|-256:128:c|
        malloc d 128    |-512:128:a|-384:128:b|-256:128:c|-128:128:d|
        malloc e 128    refused |-512:128:a|-384:128:b|-256:128:c|-128:128:d|
        malloc f 16     |-1536:16:f|-512:128:a|-384:128:b|-256:128:c|-128:128:d|
        malloc g 17     |-1536:16:f|-1024:32:g|-512:128:a|-384:128:b|-256:128:c|-128:128:d|
        free b          |-1536:16:f|-1024:32:g|-512:128:a|-384:128:.|-256:128:c|-128:128:d|
        malloc h 100    |-1536:16:f|-1024:32:g|-512:128:a|-384:128:h|-256:128:c|-128:128:d|
    """),
    # 3 bytes in front and 1 behind; e's area takes in c's, of which 8 bytes are left; f's takes in just what it needs
    "sos-kernel": (200, """
        malloc a 4      |0:8:a|8:192:.|
        malloc b 30     |0:8:a|8:40:b|48:152:.|
        malloc c 10     |0:8:a|8:40:b|48:16:c|64:136:.|
        malloc d 1      |0:8:a|8:40:b|48:16:c|64:8:d|72:128:.|
        free c          |0:8:a|8:40:b|48:16:.|64:8:d|72:128:.|
        free b          |0:8:a|8:40:.|48:16:.|64:8:d|72:128:.|
        malloc e 44     |0:8:a|8:48:e|56:8:.|64:8:d|72:128:.|
        free d          |0:8:a|8:48:e|56:8:.|64:8:.|72:128:.|
        malloc f 10     |0:8:a|8:48:e|56:16:f|72:128:.|
        malloc g 125    refused |0:8:a|8:48:e|56:16:f|72:128:.|
        malloc g 124    |0:8:a|8:48:e|56:16:f|72:128:g|
    """),
    "symbian-rheap": (200, """
        malloc a 10     |0:16:a|
        malloc b 40     |0:16:a|16:44:b|
        malloc c 1      |0:16:a|16:44:b|60:8:c|
        malloc d 20     |0:16:a|16:44:b|60:8:c|68:24:d|
        free b          |0:16:a|16:44:.|60:8:c|68:24:d|
        malloc e 30     |0:16:a|16:36:e|52:8:.|60:8:c|68:24:d|
        free c          |0:16:a|16:36:e|52:16:.|68:24:d|
        malloc f 10     |0:16:a|16:36:e|52:16:f|68:24:d|
        free d          |0:16:a|16:36:e|52:16:f|
    """),
    # 16 bytes in front; d finds neither memory nor a larger buffer, i borrows the buffer of 128
    "enea-ose": (400, """
        malloc a 10     |368:32:a|
        malloc b 40     |288:80:b|368:32:a|
        malloc c 17     |240:48:c|288:80:b|368:32:a|
        malloc d 200    refused |240:48:c|288:80:b|368:32:a|
        free b          |240:48:c|288:80:.|368:32:a|
        malloc e 33     |240:48:c|288:80:e|368:32:a|
        malloc f 100    |96:144:f|240:48:c|288:80:e|368:32:a|
        malloc h 60     |16:80:h|96:144:f|240:48:c|288:80:e|368:32:a|
        free f          |16:80:h|96:144:.|240:48:c|288:80:e|368:32:a|
        malloc i 60     |16:80:h|96:144:i|240:48:c|288:80:e|368:32:a|
        malloc j 2049   refused |16:80:h|96:144:i|240:48:c|288:80:e|368:32:a|
    """),
    # f comes from where c was freed, past a's hole; g's search goes round and merges a's with b's
    "windows-ce": (400, """
        malloc a 10     |0:24:a|
        malloc b 40     |0:24:a|24:48:b|
        malloc c 8      |0:24:a|24:48:b|72:16:c|
        malloc d 20     |0:24:a|24:48:b|72:16:c|88:32:d|
        malloc e 8      |0:24:a|24:48:b|72:16:c|88:32:d|120:16:e|
        free a          |0:24:.|24:48:b|72:16:c|88:32:d|120:16:e|
        free c          |0:24:.|24:48:b|72:16:.|88:32:d|120:16:e|
        malloc f 8      |0:24:.|24:48:b|72:16:f|88:32:d|120:16:e|
        free b          |0:24:.|24:48:.|72:16:f|88:32:d|120:16:e|
        free d          |0:24:.|24:48:.|72:16:f|88:32:.|120:16:e|
        malloc g 60     |0:72:g|72:16:f|88:32:.|120:16:e|
        malloc h 8      |0:72:g|72:16:f|88:16:h|104:16:.|120:16:e|
        free e          |0:72:g|72:16:f|88:16:h|104:16:.|120:16:.|
        malloc i 24     |0:72:g|72:16:f|88:16:h|104:32:i|
    """),
    # f takes the smaller of the large blocks; of two blocks of 16 bytes the one freed first
    "windows-xp": (4000, """
        malloc a 40     |0:48:a|
        malloc b 1476   |0:48:a|48:1488:b|
        malloc c 8      |0:48:a|48:1488:b|1536:16:c|
        malloc d 1100   |0:48:a|48:1488:b|1536:16:c|1552:1112:d|
        malloc e 8      |0:48:a|48:1488:b|1536:16:c|1552:1112:d|2664:16:e|
        malloc z 8      |0:48:a|48:1488:b|1536:16:c|1552:1112:d|2664:16:e|2680:16:z|
        free d          |0:48:a|48:1488:b|1536:16:c|1552:1112:.|2664:16:e|2680:16:z|
        free b          |0:48:a|48:1488:.|1536:16:c|1552:1112:.|2664:16:e|2680:16:z|
        malloc f 1000   |0:48:a|48:1488:.|1536:16:c|1552:1008:f|2560:104:.|2664:16:e|2680:16:z|
        malloc g 1480   |0:48:a|48:1488:g|1536:16:c|1552:1008:f|2560:104:.|2664:16:e|2680:16:z|
        malloc h 90     |0:48:a|48:1488:g|1536:16:c|1552:1008:f|2560:104:h|2664:16:e|2680:16:z|
        free c          |0:48:a|48:1488:g|1536:16:.|1552:1008:f|2560:104:h|2664:16:e|2680:16:z|
        free e          |0:48:a|48:1488:g|1536:16:.|1552:1008:f|2560:104:h|2664:16:.|2680:16:z|
        malloc i 1      |0:48:a|48:1488:g|1536:16:i|1552:1008:f|2560:104:h|2664:16:.|2680:16:z|
        free h          |0:48:a|48:1488:g|1536:16:i|1552:1008:f|2560:120:.|2680:16:z|
        malloc j 96     |0:48:a|48:1488:g|1536:16:i|1552:1008:f|2560:104:j|2664:16:.|2680:16:z|
    """),
    "windows-xp-lookaside": (400, """
        malloc a 40     |0:48:a|
        malloc b 8      |0:48:a|48:16:b|
        free a          |0:48:~|48:16:b|
        malloc c 8      |0:48:~|48:16:b|64:16:c|
        malloc d 33     |0:48:d|48:16:b|64:16:c|
        free b          |0:48:d|48:16:~|64:16:c|
        malloc e 41     |0:48:d|48:16:~|64:16:c|80:56:e|
    """),
    # g passes the queue, which files b and d; i and j are cut from what h's block left; k empties the fastbins
    "lea-2.7.2": (4000, """
        malloc a 40     |0:48:a|
        malloc b 100    |0:48:a|48:104:b|
        malloc c 12     |0:48:a|48:104:b|152:16:c|
        malloc d 300    |0:48:a|48:104:b|152:16:c|168:304:d|
        malloc e 12     |0:48:a|48:104:b|152:16:c|168:304:d|472:16:e|
        free a          |0:48:~|48:104:b|152:16:c|168:304:d|472:16:e|
        malloc f 41     |0:48:f|48:104:b|152:16:c|168:304:d|472:16:e|
        free b          |0:48:f|48:104:.|152:16:c|168:304:d|472:16:e|
        free d          |0:48:f|48:104:.|152:16:c|168:304:.|472:16:e|
        malloc g 80     |0:48:f|48:88:g|136:16:.|152:16:c|168:304:.|472:16:e|
        malloc h 200    |0:48:f|48:88:g|136:16:.|152:16:c|168:208:h|376:96:.|472:16:e|
        malloc i 30     |0:48:f|48:88:g|136:16:.|152:16:c|168:208:h|376:40:i|416:56:.|472:16:e|
        malloc j 30     |0:48:f|48:88:g|136:16:.|152:16:c|168:208:h|376:40:i|416:40:j|456:16:.|472:16:e|
        free g          |0:48:f|48:104:.|152:16:c|168:208:h|376:40:i|416:40:j|456:16:.|472:16:e|
        free i          |0:48:f|48:104:.|152:16:c|168:208:h|376:40:~|416:40:j|456:16:.|472:16:e|
        free h          |0:48:f|48:104:.|152:16:c|168:208:.|376:40:~|416:40:j|456:16:.|472:16:e|
        malloc k 245    |0:48:f|48:104:.|152:16:c|168:248:.|416:40:j|456:16:.|472:16:e|488:256:k|
    """),
    # 300 bytes are a small request here, and leave a in its fastbin
    "lea-2.7.2-128": (4000, """
        malloc a 12     |0:16:a|
        malloc b 300    |0:16:a|16:304:b|
        malloc c 12     |0:16:a|16:304:b|320:16:c|
        free a          |0:16:~|16:304:b|320:16:c|
        free b          |0:16:~|16:304:.|320:16:c|
        malloc d 300    |0:16:~|16:304:d|320:16:c|
        free d          |0:16:~|16:304:.|320:16:c|
        malloc e 280    |0:16:~|16:288:e|304:16:.|320:16:c|
        free e          |0:16:~|16:304:.|320:16:c|
        malloc f 501    |0:320:.|320:16:c|336:512:f|
    """),
    # the first part of a larger chunk is handed out; g finds memory next to the free 12 bytes, h does not, and i gets
    # what lies free at the end of the heap with the 4 bytes that are left
    "newlib-nano": (200, """
        malloc a 10     |0:20:a|
        malloc b 40     |0:20:a|20:48:b|
        malloc c 1      |0:20:a|20:48:b|68:12:c|
        free b          |0:20:a|20:48:.|68:12:c|
        malloc d 24     |0:20:a|20:32:d|52:16:.|68:12:c|
        free c          |0:20:a|20:32:d|52:28:.|
        malloc e 8      |0:20:a|20:32:d|52:16:e|68:12:.|
        malloc f 20     |0:20:a|20:32:d|52:16:e|68:12:.|80:28:f|
        malloc g 80     |0:20:a|20:32:d|52:16:e|68:12:.|80:28:f|108:88:g|
        malloc h 24     refused |0:20:a|20:32:d|52:16:e|68:12:.|80:28:f|108:88:g|
        free g          |0:20:a|20:32:d|52:16:e|68:12:.|80:28:f|108:88:.|
        malloc i 84     |0:20:a|20:32:d|52:16:e|68:12:.|80:28:f|108:92:i|
    """),
    # requests are cut from the end; what is free at the end of the heap is not extended
    "newlib-nano-2020": (200, """
        malloc a 10     |0:20:a|
        malloc b 40     |0:20:a|20:48:b|
        malloc c 1      |0:20:a|20:48:b|68:12:c|
        free b          |0:20:a|20:48:.|68:12:c|
        malloc d 24     |0:20:a|20:16:.|36:32:d|68:12:c|
        free c          |0:20:a|20:16:.|36:32:d|68:12:.|
        malloc e 8      |0:20:a|20:16:e|36:32:d|68:12:.|
        malloc f 20     |0:20:a|20:16:e|36:32:d|68:12:.|80:28:f|
        free d          |0:20:a|20:16:e|36:44:.|80:28:f|
        malloc g 30     |0:20:a|20:16:e|36:44:g|80:28:f|
    """),
    # the sweep before e merges b with c; d goes back to the end of the heap, what lies in front of it does not
    "contiki-ng-heapmem": (400, """
        malloc a 10     |0:28:a|
        malloc b 40     |0:28:a|28:56:b|
        malloc c 8      |0:28:a|28:56:b|84:24:c|
        malloc d 4      |0:28:a|28:56:b|84:24:c|108:20:d|
        free b          |0:28:a|28:56:.|84:24:c|108:20:d|
        free c          |0:28:a|28:56:.|84:24:.|108:20:d|
        malloc e 60     |0:28:a|28:80:e|108:20:d|
        free e          |0:28:a|28:80:.|108:20:d|
        malloc f 20     |0:28:a|28:36:f|64:44:.|108:20:d|
        free d          |0:28:a|28:36:f|64:44:.|
        malloc g 60     |0:28:a|28:36:f|64:44:.|108:76:g|
    """),
    "linux-pow2-page": (8192, """
        malloc a 40     |8124:68:a|
        malloc b 1500   |4024:4100:b|8124:68:a|
        malloc c 1024   |2996:1028:c|4024:4100:b|8124:68:a|
        free b          |2996:1028:c|4024:4100:.|8124:68:a|
        malloc d 1100   |2996:1028:c|4024:4100:d|8124:68:a|
        malloc e 5000   refused |2996:1028:c|4024:4100:d|8124:68:a|
        malloc e 64     |2928:68:e|2996:1028:c|4024:4100:d|8124:68:a|
    """),
    # a page holds three blocks of 1 KB with their headers; runs of pages grow from the other end and merge
    "uclinux": (20480, """
        malloc a 1000   |17396:1028:a|18424:1028:.|19452:1028:.|
        malloc b 5000   |0:8192:b|17396:1028:a|18424:1028:.|19452:1028:.|
        malloc c 8000   |0:8192:b|8192:8192:c|17396:1028:a|18424:1028:.|19452:1028:.|
        malloc d 5000   refused |0:8192:b|8192:8192:c|17396:1028:a|18424:1028:.|19452:1028:.|
        free b          |0:8192:.|8192:8192:c|17396:1028:a|18424:1028:.|19452:1028:.|
        malloc e 8188   |0:8192:e|8192:8192:c|17396:1028:a|18424:1028:.|19452:1028:.|
        free a          |0:8192:e|8192:8192:c|17396:1028:.|18424:1028:.|19452:1028:.|
        malloc f 513    |0:8192:e|8192:8192:c|17396:1028:f|18424:1028:.|19452:1028:.|
    """),
    # no header, no alignment: c slides down at once
    "contiki-mmem": (100, """
        malloc a 10     |0:10:a|
        malloc b 7      |0:10:a|10:7:b|
        malloc c 20     |0:10:a|10:7:b|17:20:c|
        free b          |0:10:a|10:20:c|
        malloc d 70     |0:10:a|10:20:c|30:70:d|
        malloc e 1      refused |0:10:a|10:20:c|30:70:d|
        free a          |0:20:c|20:70:d|
        malloc e 9      |0:20:c|20:70:d|90:9:e|
    """),
}  # fmt: skip
"""Name -> room in bytes, calls and blocks."""
TABLES["lvgl-tlsf"] = TABLES["tlsf"]


def test_every_allocator_has_a_table() -> None:
    """Kingsley's is in test_core_layout.py: its pages are cut into hundreds of blocks, which are counted there."""
    assert set(TABLES) | set(OF_PAPERS) | {"kingsley"} == set(zoo.names())


@pytest.mark.parametrize("name", TABLES)
def test_behaviour(script: Path, tmp_path: Path, name: str) -> None:
    room, table = TABLES[name]
    play(script, tmp_path, zoo.load(name), table, room)
