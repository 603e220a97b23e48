"""Behaviour tables of the zoo, worked out by hand from the rules that each allocator's source states.

`behaviour.py` says how a table reads. `ROOM` is what the arena has beside control data and regions; where all memory is
one free block to begin with, and blocks have boundary tags, the last header of it marks the end.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from behaviour import build_script, play

from heapwright.recipes.zoo import catalogue as zoo


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_script(tmp_path_factory.mktemp("script"))


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
    # payloads of at least 12 bytes, 8 in front; a rest below 20 bytes stays with the block
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
    # the first part of a larger chunk is handed out; g finds memory beside the free 12 bytes, h does not, and i gets
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
    # blocks of 1088 to 1148 bytes share a bin: e, of 1104, looks from 1152 up and passes a's hole by, f's 1088 is in it
    "real-time": (4000, """
        malloc a 1100   |0:1104:a|
        malloc b 8      |0:1104:a|1104:16:b|
        malloc c 1016   |0:1104:a|1104:16:b|1120:1020:c|
        malloc d 8      |0:1104:a|1104:16:b|1120:1020:c|2140:16:d|
        free a          |0:1104:.|1104:16:b|1120:1020:c|2140:16:d|
        malloc e 1100   |0:1104:.|1104:16:b|1120:1020:c|2140:16:d|2156:1104:e|
        malloc f 1084   |0:1088:f|1088:16:.|1104:16:b|1120:1020:c|2140:16:d|2156:1104:e|
        free c          |0:1088:f|1088:16:.|1104:16:b|1120:1020:.|2140:16:d|2156:1104:e|
        malloc g 500    |0:1088:f|1088:16:.|1104:16:b|1120:504:g|1624:516:.|2140:16:d|2156:1104:e|
        free b          |0:1088:f|1088:32:.|1120:504:g|1624:516:.|2140:16:d|2156:1104:e|
        free e          |0:1088:f|1088:32:.|1120:504:g|1624:516:.|2140:16:d|
        malloc h 1200   |0:1088:f|1088:32:.|1120:504:g|1624:516:.|2140:16:d|2156:1204:h|
    """),
    # what a leaves after e is the victim and serves f; c's 28 bytes are in the bin behind g's, which looks there first;
    # i looks two bins further before the victim
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
    # e makes the rest of a the victim; f takes all of c, one bin further, though the victim would do; g is cut from the
    # victim, and what is freed beside it joins it
    "all-round": (700, """
        malloc a 200    |0:208:a|
        malloc b 20     |0:208:a|208:24:b|
        malloc c 36     |0:208:a|208:24:b|232:40:c|
        malloc d 20     |0:208:a|208:24:b|232:40:c|272:24:d|
        free a          |0:208:.|208:24:b|232:40:c|272:24:d|
        malloc e 60     |0:64:e|64:144:v|208:24:b|232:40:c|272:24:d|
        free c          |0:64:e|64:144:v|208:24:b|232:40:.|272:24:d|
        malloc f 28     |0:64:e|64:144:v|208:24:b|232:40:f|272:24:d|
        malloc g 20     |0:64:e|64:24:g|88:120:v|208:24:b|232:40:f|272:24:d|
        free b          |0:64:e|64:24:g|88:144:v|232:40:f|272:24:d|
        free e          |0:64:.|64:24:g|88:144:v|232:40:f|272:24:d|
        free g          |0:232:v|232:40:f|272:24:d|
    """),
    # 300 and 290 bytes share a list; f has none, and empties them; b borders free memory and does not wait, d does
    "fast": (8000, """
        malloc a 300    |0:320:a|
        malloc b 20     |0:320:a|320:24:b|
        malloc c 300    |0:320:a|320:24:b|344:320:c|
        malloc d 20     |0:320:a|320:24:b|344:320:c|664:24:d|
        free a          |0:320:~|320:24:b|344:320:c|664:24:d|
        malloc e 290    |0:320:e|320:24:b|344:320:c|664:24:d|
        free e          |0:320:~|320:24:b|344:320:c|664:24:d|
        malloc f 1600   |0:320:.|320:24:b|344:320:c|664:24:d|688:1608:f|
        free b          |0:344:.|344:320:c|664:24:d|688:1608:f|
        free d          |0:344:.|344:320:c|664:24:~|688:1608:f|
        malloc g 1500   |0:344:.|344:320:c|664:24:~|688:1608:f|2296:1536:g|
        free f          |0:344:.|344:320:c|664:24:~|688:1608:.|2296:1536:g|
        free c          |0:664:.|664:24:~|688:1608:.|2296:1536:g|
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
    # b waits in a list, where a does not join it, and serves f; e makes the rest of a the victim, which serves g; h
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


def test_every_allocator_has_a_table() -> None:
    """Kingsley's is in test_core_layout.py: its pages are cut into hundreds of blocks, which are counted there."""
    assert set(TABLES) | {"kingsley"} == set(zoo.names())


@pytest.mark.parametrize("name", TABLES)
def test_behaviour(script: Path, tmp_path: Path, name: str) -> None:
    room, table = TABLES[name]
    play(script, tmp_path, zoo.load(name), table, room)
