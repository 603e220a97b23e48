"""Behaviour tables of the allocators whose sources are papers, and of our own; see behaviour.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from behaviour import play

from heapwright._recipes.recipe import Recipe
from heapwright._recipes.zoo import catalogue as zoo

TREE = """
align = 4
[[pool]]
kind = "general"
free_list = "tree"
fit = "{fit}"
"""

VICTIM = """
align = 4
[[pool]]
kind = "general"
header = 4
bins = "exact"
victim_up_to = 2000
close_bins = 12
fit = "best"
"""


FIRST_FIT = """
    malloc a 10     |0:16:a|
    malloc b 40     |0:16:a|16:44:b|
    malloc c 8      |0:16:a|16:44:b|60:12:c|
    malloc d 20     |0:16:a|16:44:b|60:12:c|72:24:d|
    malloc e 1      |0:16:a|16:44:b|60:12:c|72:24:d|96:8:e|
    free b          |0:16:a|16:44:.|60:12:c|72:24:d|96:8:e|
    free d          |0:16:a|16:44:.|60:12:c|72:24:.|96:8:e|
    malloc f 16     |0:16:a|16:20:f|36:24:.|60:12:c|72:24:.|96:8:e|
    free c          |0:16:a|16:20:f|36:60:.|96:8:e|
    free e          |0:16:a|16:20:f|
    realloc a 30    |0:16:.|16:20:f|36:36:a|
    free f          |0:36:.|36:36:a|
    malloc g 200    refused |0:36:.|36:36:a|
    malloc g 0      |0:8:g|8:28:.|36:36:a|
    malloc h 24     |0:8:g|8:28:h|36:36:a|
    free a          |0:8:g|8:28:h|
"""
"""One header word of 4 bytes, smallest block 8. f goes to the first hole that holds it, 44 bytes at 16; the heap ends
where the last used block ends."""

BEST_FIT = """
    malloc a 10     |0:16:a|
    malloc b 40     |0:16:a|16:44:b|
    malloc c 8      |0:16:a|16:44:b|60:12:c|
    malloc d 20     |0:16:a|16:44:b|60:12:c|72:24:d|
    malloc e 1      |0:16:a|16:44:b|60:12:c|72:24:d|96:8:e|
    free b          |0:16:a|16:44:.|60:12:c|72:24:d|96:8:e|
    free d          |0:16:a|16:44:.|60:12:c|72:24:.|96:8:e|
    malloc f 16     |0:16:a|16:44:.|60:12:c|72:24:f|96:8:e|
    free c          |0:16:a|16:56:.|72:24:f|96:8:e|
    free e          |0:16:a|16:56:.|72:24:f|
    realloc a 30    |0:36:a|36:36:.|72:24:f|
    free f          |0:36:a|
    malloc g 200    refused |0:36:a|
"""
"""The same calls. f takes the smallest hole that holds it, and with it the 4 bytes that make no block; a grows into the
free block behind it."""


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("first-fit-slow-free", FIRST_FIT),
        ("first-fit-fast-free", FIRST_FIT),
        ("best-fit-slow-free", BEST_FIT),
        ("best-fit-fast-free", BEST_FIT),
    ],
)
def test_fits_over_all_blocks(script: Path, tmp_path: Path, name: str, table: str) -> None:
    play(script, tmp_path, zoo.load(name), table, room=200)


def test_drr_proposed(script: Path, tmp_path: Path) -> None:
    """16 and 1476 bytes go through freelists and are never merged; first fit over a LIFO list serves the rest."""
    table = """
        malloc a 16     |0:20:a|
        malloc b 1476   |0:20:a|20:1480:b|
        malloc c 100    |0:20:a|20:1480:b|1500:104:c|
        malloc d 16     |0:20:a|20:1480:b|1500:104:c|1604:20:d|
        free a          |0:20:~|20:1480:b|1500:104:c|1604:20:d|
        free d          |0:20:~|20:1480:b|1500:104:c|1604:20:~|
        malloc e 14     |0:20:~|20:1480:b|1500:104:c|1604:20:e|
        free b          |0:20:~|20:1480:~|1500:104:c|1604:20:e|
        free c          |0:20:~|20:1480:~|1500:104:.|1604:20:e|
        malloc f 60     |0:20:~|20:1480:~|1500:64:f|1564:40:.|1604:20:e|
        malloc g 1476   |0:20:~|20:1480:g|1500:64:f|1564:40:.|1604:20:e|
        malloc h 1400   |0:20:~|20:1480:g|1500:64:f|1564:40:.|1604:20:e|1624:1404:h|
        free f          |0:20:~|20:1480:g|1500:104:.|1604:20:e|1624:1404:h|
        realloc e 50    |0:20:~|20:1480:g|1500:56:e|1556:48:.|1604:20:~|1624:1404:h|
        malloc i 15     |0:20:~|20:1480:g|1500:56:e|1556:48:.|1604:20:i|1624:1404:h|
        malloc j 16     |0:20:j|20:1480:g|1500:56:e|1556:48:.|1604:20:i|1624:1404:h|
        free h          |0:20:j|20:1480:g|1500:56:e|1556:48:.|1604:20:i|
    """
    play(script, tmp_path, zoo.load("drr-proposed"), table, room=4000)


def test_a_list_with_room_for_one_block_is_emptied_for_the_next(script: Path, tmp_path: Path) -> None:
    quick = 'kind = "quick"\nsizes = [16]\nflush = "over-limit"\nlimit_blocks = 1\n'
    table = """
        malloc a 16     |0:20:a|
        malloc b 16     |0:20:a|20:20:b|
        malloc c 16     |0:20:a|20:20:b|40:20:c|
        free a          |0:20:~|20:20:b|40:20:c|
        free b          |0:20:.|20:20:~|40:20:c|
    """
    recipe = Recipe.parse(f'align = 4\n[[pool]]\n{quick}[[pool]]\nkind = "general"\norder = "address"\n', "here")
    play(script, tmp_path, recipe, table, room=200)


def test_of_many_lists_each_accounts_for_its_bytes(script: Path, tmp_path: Path) -> None:
    """Sizes that a request is compared with one after the other; the bytes that wait bear on when they are flushed."""
    sizes = [16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104]
    quick = f'kind = "quick"\nsizes = {sizes}\nflush = "before-growing"\n'
    table = """
        malloc a 16     |0:20:a|
        malloc b 104    |0:20:a|20:108:b|
        free a          |0:20:~|20:108:b|
        free b          |0:20:~|20:108:~|
        malloc c 102    |0:20:~|20:108:c|
        malloc d 14     |0:20:d|20:108:c|
    """
    recipe = Recipe.parse(f'align = 4\n[[pool]]\n{quick}[[pool]]\nkind = "general"\norder = "address"\n', "here")
    play(script, tmp_path, recipe, table, room=400)


def test_exact_bins(script: Path, tmp_path: Path) -> None:
    """Blocks are multiples of 8, at least 16, and the next filled bin is the best fit."""
    table = """
        malloc a 20     |0:24:a|
        malloc b 36     |0:24:a|24:40:b|
        malloc c 12     |0:24:a|24:40:b|64:16:c|
        malloc d 28     |0:24:a|24:40:b|64:16:c|80:32:d|
        malloc e 4      |0:24:a|24:40:b|64:16:c|80:32:d|112:16:e|
        free b          |0:24:a|24:40:.|64:16:c|80:32:d|112:16:e|
        free d          |0:24:a|24:40:.|64:16:c|80:32:.|112:16:e|
        malloc f 20     |0:24:a|24:40:.|64:16:c|80:32:f|112:16:e|
        malloc g 20     |0:24:a|24:24:g|48:16:.|64:16:c|80:32:f|112:16:e|
        malloc h 10     |0:24:a|24:24:g|48:16:h|64:16:c|80:32:f|112:16:e|
        free c          |0:24:a|24:24:g|48:16:h|64:16:.|80:32:f|112:16:e|
        free h          |0:24:a|24:24:g|48:32:.|80:32:f|112:16:e|
        free f          |0:24:a|24:24:g|48:64:.|112:16:e|
        malloc i 60     |0:24:a|24:24:g|48:64:i|112:16:e|
        free e          |0:24:a|24:24:g|48:64:i|
    """
    play(script, tmp_path, zoo.load("exact-bins"), table, room=500)


def test_exact_bins_above_2_kb(script: Path, tmp_path: Path) -> None:
    """The bin of 2048 to 2559 bytes holds a and c: e takes the smaller though the other was freed last."""
    table = """
        malloc a 2196   |0:2200:a|
        malloc b 4      |0:2200:a|2200:16:b|
        malloc c 2092   |0:2200:a|2200:16:b|2216:2096:c|
        malloc d 4      |0:2200:a|2200:16:b|2216:2096:c|4312:16:d|
        free c          |0:2200:a|2200:16:b|2216:2096:.|4312:16:d|
        free a          |0:2200:.|2200:16:b|2216:2096:.|4312:16:d|
        malloc e 2044   |0:2200:.|2200:16:b|2216:2048:e|4264:48:.|4312:16:d|
        free b          |0:2216:.|2216:2048:e|4264:48:.|4312:16:d|
        malloc f 2196   |0:2200:f|2200:16:.|2216:2048:e|4264:48:.|4312:16:d|
        free e          |0:2200:f|2200:2112:.|4312:16:d|
        free d          |0:2200:f|
    """
    play(script, tmp_path, zoo.load("exact-bins"), table, room=5000)


def test_the_best_of_the_first_blocks_of_a_list(script: Path, tmp_path: Path) -> None:
    """The last freed are looked at first: x fits exactly into c, but no more than two blocks are looked at."""
    table = """
        malloc a 60     |0:64:a|
        malloc b 4      |0:64:a|64:16:b|
        malloc c 20     |0:64:a|64:16:b|80:24:c|
        malloc d 4      |0:64:a|64:16:b|80:24:c|104:16:d|
        malloc e 40     |0:64:a|64:16:b|80:24:c|104:16:d|120:44:e|
        malloc f 4      |0:64:a|64:16:b|80:24:c|104:16:d|120:44:e|164:16:f|
        free c          |0:64:a|64:16:b|80:24:.|104:16:d|120:44:e|164:16:f|
        free a          |0:64:.|64:16:b|80:24:.|104:16:d|120:44:e|164:16:f|
        free e          |0:64:.|64:16:b|80:24:.|104:16:d|120:44:.|164:16:f|
        malloc x 20     |0:64:.|64:16:b|80:24:.|104:16:d|120:24:x|144:20:.|164:16:f|
    """
    general = 'kind = "general"\norder = "lifo"\nfit = "best"\nsearch_most = 2\n'
    play(script, tmp_path, Recipe.parse(f"align = 4\n[[pool]]\n{general}", "here"), table, room=400)


def test_victim_bins(script: Path, tmp_path: Path) -> None:
    """d leaves the rest of b's block as the last remainder; small blocks are cut from its start, freed neighbours join
    it, h is cut from it because no bin holds 2504 bytes. With c the heap's end takes the remainder, too. j, k and l
    come from the closest bins, whose remainders are ordinary free blocks; the last remainder grows over i."""
    table = """
        malloc a 60     |0:64:a|
        malloc b 2996   |0:64:a|64:3000:b|
        malloc c 12     |0:64:a|64:3000:b|3064:16:c|
        free b          |0:64:a|64:3000:.|3064:16:c|
        malloc d 36     |0:64:a|64:40:d|104:2960:v|3064:16:c|
        malloc e 100    |0:64:a|64:40:d|104:104:e|208:2856:v|3064:16:c|
        malloc f 36     |0:64:a|64:40:d|104:104:e|208:40:f|248:2816:v|3064:16:c|
        free e          |0:64:a|64:40:d|104:104:.|208:40:f|248:2816:v|3064:16:c|
        malloc g 100    |0:64:a|64:40:d|104:104:g|208:40:f|248:2816:v|3064:16:c|
        free f          |0:64:a|64:40:d|104:104:g|208:2856:v|3064:16:c|
        free g          |0:64:a|64:40:d|104:2960:v|3064:16:c|
        malloc h 2500   |0:64:a|64:40:d|104:2504:h|2608:456:v|3064:16:c|
        free c          |0:64:a|64:40:d|104:2504:h|
        malloc i 12     |0:64:a|64:40:d|104:2504:h|2608:16:i|
        free d          |0:64:a|64:40:.|104:2504:h|2608:16:i|
        malloc j 8      |0:64:a|64:16:j|80:24:.|104:2504:h|2608:16:i|
        malloc k 12     |0:64:a|64:16:j|80:24:k|104:2504:h|2608:16:i|
        free h          |0:64:a|64:16:j|80:24:k|104:2504:.|2608:16:i|
        realloc k 40    |0:64:a|64:16:j|80:44:k|124:2484:.|2608:16:i|
        free a          |0:64:.|64:16:j|80:44:k|124:2484:.|2608:16:i|
        malloc l 20     |0:24:l|24:40:.|64:16:j|80:44:k|124:2484:.|2608:16:i|
        malloc n 300    |0:24:l|24:40:.|64:16:j|80:44:k|124:304:n|428:2180:v|2608:16:i|
        realloc n 340   |0:24:l|24:40:.|64:16:j|80:44:k|124:344:n|468:2140:v|2608:16:i|
        malloc m 2500   |0:24:l|24:40:.|64:16:j|80:44:k|124:344:n|468:2140:v|2608:16:i|2624:2504:m|
        free i          |0:24:l|24:40:.|64:16:j|80:44:k|124:344:n|468:2156:v|2624:2504:m|
        free m          |0:24:l|24:40:.|64:16:j|80:44:k|124:344:n|
    """
    play(script, tmp_path, Recipe.parse(VICTIM), table, room=6000)


def test_st_memmgr(script: Path, tmp_path: Path) -> None:
    """Descriptors of 2 bytes and 4-byte frames. Free only resets a bit; the search merges what it passes."""
    table = """
        malloc a 10     |0:12:a|
        malloc b 6      |0:12:a|12:8:b|
        malloc c 20     |0:12:a|12:8:b|20:24:c|
        malloc d 2      |0:12:a|12:8:b|20:24:c|44:8:d|
        free b          |0:12:a|12:8:.|20:24:c|44:8:d|
        free a          |0:12:.|12:8:.|20:24:c|44:8:d|
        free c          |0:12:.|12:8:.|20:24:.|44:8:d|
        malloc e 16     |0:20:e|20:24:.|44:8:d|
        free d          |0:20:e|20:24:.|44:8:.|
        malloc f 20     |0:20:e|20:24:f|
        free e          |0:20:.|20:24:f|
        malloc g 14     |0:20:g|20:24:f|
        free g          |0:20:.|20:24:f|
        free f          |0:20:.|20:24:.|
        malloc h 100    |0:104:h|
    """
    play(script, tmp_path, zoo.load("st-memmgr"), table, room=200)


def test_kingsley(script: Path, tmp_path: Path) -> None:
    """A page holds four blocks of 1 KB or two of 2 KB; 8 KB are carved alone. Nothing is split or merged."""
    table = """
        malloc a 1000   |12288:1024:a|13312:1024:.|14336:1024:.|15360:1024:.|
        malloc b 1020   |12288:1024:a|13312:1024:b|14336:1024:.|15360:1024:.|
        malloc c 1021   |8192:2048:c|10240:2048:.|12288:1024:a|13312:1024:b|14336:1024:.|15360:1024:.|
        free a          |8192:2048:c|10240:2048:.|12288:1024:.|13312:1024:b|14336:1024:.|15360:1024:.|
        malloc d 600    |8192:2048:c|10240:2048:.|12288:1024:d|13312:1024:b|14336:1024:.|15360:1024:.|
        malloc e 5000   |0:8192:e|8192:2048:c|10240:2048:.|12288:1024:d|13312:1024:b|14336:1024:.|15360:1024:.|
        malloc f 2044   |0:8192:e|8192:2048:c|10240:2048:f|12288:1024:d|13312:1024:b|14336:1024:.|15360:1024:.|
        malloc g 2044   refused |0:8192:e|8192:2048:c|10240:2048:f|12288:1024:d|13312:1024:b|14336:1024:.|15360:1024:.|
        realloc d 1020  |0:8192:e|8192:2048:c|10240:2048:f|12288:1024:d|13312:1024:b|14336:1024:.|15360:1024:.|
        free b          |0:8192:e|8192:2048:c|10240:2048:f|12288:1024:d|13312:1024:.|14336:1024:.|15360:1024:.|
        free d          |0:8192:e|8192:2048:c|10240:2048:f|12288:1024:.|13312:1024:.|14336:1024:.|15360:1024:.|
        malloc h 513    |0:8192:e|8192:2048:c|10240:2048:f|12288:1024:h|13312:1024:.|14336:1024:.|15360:1024:.|
    """
    play(script, tmp_path, zoo.load("kingsley"), table, room=16384)


def test_wifi_special_pools(script: Path, tmp_path: Path) -> None:
    """Classes grow from the end, a block with an 8-byte header at a time; a pool's first free block in order of carving
    is taken, so f gets a's block though c's was freed last. Above 1500 bytes a heap grows from the start."""
    table = """
        malloc a 40     |8144:48:a|
        malloc b 1500   |6636:1508:b|8144:48:a|
        malloc c 30     |6588:48:c|6636:1508:b|8144:48:a|
        malloc d 41     |6516:72:d|6588:48:c|6636:1508:b|8144:48:a|
        malloc e 1600   |0:1608:e|6516:72:d|6588:48:c|6636:1508:b|8144:48:a|
        free a          |0:1608:e|6516:72:d|6588:48:c|6636:1508:b|8144:48:.|
        free c          |0:1608:e|6516:72:d|6588:48:.|6636:1508:b|8144:48:.|
        malloc f 40     |0:1608:e|6516:72:d|6588:48:.|6636:1508:b|8144:48:f|
        malloc g 1      |0:1608:e|6516:72:d|6588:48:g|6636:1508:b|8144:48:f|
        realloc g 41    |0:1608:e|6444:72:g|6516:72:d|6588:48:.|6636:1508:b|8144:48:f|
        malloc h 4829   refused |0:1608:e|6444:72:g|6516:72:d|6588:48:.|6636:1508:b|8144:48:f|
        malloc h 4828   |0:1608:e|1608:4836:h|6444:72:g|6516:72:d|6588:48:.|6636:1508:b|8144:48:f|
        malloc i 20     |0:1608:e|1608:4836:h|6444:72:g|6516:72:d|6588:48:i|6636:1508:b|8144:48:f|
        malloc j 20     refused |0:1608:e|1608:4836:h|6444:72:g|6516:72:d|6588:48:i|6636:1508:b|8144:48:f|
    """
    play(script, tmp_path, zoo.load("wifi-special-pools"), table, room=8192)


HOLES = """
    malloc a 36     |0:40:a|
    malloc b 12     |0:40:a|40:16:b|
    malloc c 20     |0:40:a|40:16:b|56:24:c|
    malloc d 12     |0:40:a|40:16:b|56:24:c|80:16:d|
    malloc e 28     |0:40:a|40:16:b|56:24:c|80:16:d|96:32:e|
    malloc f 1      |0:40:a|40:16:b|56:24:c|80:16:d|96:32:e|128:16:f|
    free c          |0:40:a|40:16:b|56:24:.|80:16:d|96:32:e|128:16:f|
    free a          |0:40:.|40:16:b|56:24:.|80:16:d|96:32:e|128:16:f|
    free e          |0:40:.|40:16:b|56:24:.|80:16:d|96:32:.|128:16:f|
"""


def test_a_first_fit_from_a_tree(script: Path, tmp_path: Path) -> None:
    """Holes of 40, 24 and 32 bytes: 24 bytes come from the lowest, 32 from the only one left that is large enough."""
    table = """
        malloc g 20     |0:24:g|24:16:.|40:16:b|56:24:.|80:16:d|96:32:.|128:16:f|
        malloc h 28     |0:24:g|24:16:.|40:16:b|56:24:.|80:16:d|96:32:h|128:16:f|
        free b          |0:24:g|24:56:.|80:16:d|96:32:h|128:16:f|
        malloc i 1      |0:24:g|24:16:i|40:40:.|80:16:d|96:32:h|128:16:f|
        free h          |0:24:g|24:16:i|40:40:.|80:16:d|96:32:.|128:16:f|
        free f          |0:24:g|24:16:i|40:40:.|80:16:d|
        free d          |0:24:g|24:16:i|
    """
    play(script, tmp_path, Recipe.parse(TREE.format(fit="first")), HOLES + table, room=160)


def test_a_best_fit_from_a_tree(script: Path, tmp_path: Path) -> None:
    """The same holes: 24 bytes come from the one that has just these, 28 from the next, whole, as 4 make no block."""
    table = """
        malloc g 20     |0:40:.|40:16:b|56:24:g|80:16:d|96:32:.|128:16:f|
        malloc h 24     |0:40:.|40:16:b|56:24:g|80:16:d|96:32:h|128:16:f|
        malloc i 8      |0:16:i|16:24:.|40:16:b|56:24:g|80:16:d|96:32:h|128:16:f|
        free b          |0:16:i|16:40:.|56:24:g|80:16:d|96:32:h|128:16:f|
        free h          |0:16:i|16:40:.|56:24:g|80:16:d|96:32:.|128:16:f|
        free d          |0:16:i|16:40:.|56:24:g|80:48:.|128:16:f|
        malloc j 32     |0:16:i|16:40:j|56:24:g|80:48:.|128:16:f|
        free g          |0:16:i|16:40:j|56:72:.|128:16:f|
    """
    play(script, tmp_path, Recipe.parse(TREE.format(fit="best")), HOLES + table, room=160)
