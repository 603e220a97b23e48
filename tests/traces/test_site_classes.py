"""Classes of call sites: found by the lives and sizes of their objects, and made into pools by a space."""

from __future__ import annotations

from pathlib import Path

import pytest

import heapwright as hw
from heapwright._explore.site_pools import pool_of_sites
from heapwright._recipes.sites import c_names
from heapwright._traces.site_classes import EQUAL_OBJECTS, SitesOfClass, site_classes
from heapwright._traces.trace import Trace

SITES = ("", "brief", "kept", "equal", "mixed")


def made_trace(rounds: int = 40, odd_at: int | None = None, sites: tuple[str, ...] = SITES) -> Trace:
    """Objects of 24 bytes of "equal" and two of "kept" that stay; in each round one of "brief" and of "mixed" dies.

    `odd_at`: the object of "equal" that has another size.
    """
    rows = [(0, 0, 500, 2), (0, 1, 300, 2)]
    for at in range(rounds):
        rows += [(0, 100 + at, 32 if at == odd_at else 24, 3)]
        rows += [(0, 1000 + at, 8 + at % 3, 1), (3, 1000 + at, 0, 0)]
        rows += [(0, 2000 + at, 16 + at, 4)]
        rows += [(3, 2000 + at, 0, 0)] if at % 2 else []
    rows += [(3, 100 + at, 0, 0) for at in range(rounds)]
    op, id, size, site = zip(*rows, strict=True)
    return Trace.from_columns(
        op=op, id=id, size=size, site=[item if sites == SITES else 0 for item in site], sites=sites
    )


def test_sites_are_told_by_lives_and_sizes() -> None:
    result = site_classes([made_trace()])
    assert result["short"].sites == ("brief",)
    assert result["long"].sites == ("kept",)
    assert result["equal"].sites == ("equal",)
    assert result["long"].live_bytes == 504 + 8 + 304 + 8
    assert result["equal"].sizes == (24,)
    assert 30 <= result["equal"].counts[0] <= 40  # what was alive whenever memory was scarce


def test_a_site_is_of_a_class_in_all_traces_that_have_it() -> None:
    assert site_classes([made_trace(), made_trace(odd_at=30)])["equal"].sites == ()
    assert site_classes([made_trace(12)])["equal"].sites == ()  # too few objects
    unnamed = made_trace(sites=("",))
    assert site_classes([unnamed, made_trace()])["equal"].sites == ("equal",)
    with pytest.raises(hw.HeapwrightError, match="no call site is named; record with sites"):
        site_classes([unnamed])


def test_a_site_alone_is_told_from_so_many_objects_on() -> None:
    for objects in (EQUAL_OBJECTS - 1, EQUAL_OBJECTS):
        trace = Trace.from_columns(
            op=[0] * objects, id=range(objects), size=[24] * objects, site=[1] * objects, sites=("", "alone")
        )
        result = site_classes([trace])
        assert result["long"].sites == ("alone",) and result["short"].sites == ()
        assert result["equal"].sites == (("alone",) if objects == EQUAL_OBJECTS else ())


def test_the_sites_with_the_most_objects_are_told() -> None:
    assert site_classes([made_trace()], most=0)["short"].sites == ()


def test_pools_are_given_the_sites_and_what_these_need() -> None:
    result = SitesOfClass(("a", "b"), 1000, (20, 24, 60), (3, 4, 2))
    assert pool_of_sites(result, {"kind": "fixed"}, 8) == {"sites": ["a", "b"], "sizes": [24, 64], "counts": [7, 2]}
    assert pool_of_sites(result, {"kind": "general"}, 8) == {"sites": ["a", "b"], "region": 1152}
    assert pool_of_sites(result, {"kind": "general", "region": 64}, 8)["region"] == 64
    assert pool_of_sites(SitesOfClass((), 0), {"kind": "general"}, 8) == {}
    assert pool_of_sites(SitesOfClass(("a",), 0), {"kind": "general"}, 8) == {}, "nothing of it lives when it matters"


def space(tmp_path: Path, first: str, traces: list[Trace]) -> list[hw.Recipe]:
    path = tmp_path / "space.toml"
    path.write_text(f'include_zoo = false\n[[pool]]\n{first}\n[[pool]]\nkind = "general"\n')
    return list(hw.Space.load(path, traces).recipes())


def test_a_space_has_pools_for_the_classes_that_its_traces_show(tmp_path: Path) -> None:
    trace = made_trace()
    made = space(tmp_path, 'kind = "fixed"\nsite_class = ["none", "equal"]', [trace])
    assert [item.sites for item in made] == [(), (("equal",),)]
    fixed = made[1].to_dict()["pool"][0]
    assert fixed == {"kind": "fixed", "sites": ["equal"], "sizes": [24], "counts": fixed["counts"]}
    short = space(tmp_path, 'kind = "general"\nsite_class = "long"', [trace])
    assert [item.sites for item in short] == [(("kept",),)]
    assert hw.replay(trace, short[0]).metrics["failed"] == 0
    ended = space(tmp_path, 'kind = "general"\nplace = "ends"\nsite_class = ["none", "long"]', [trace])
    assert [item.sites for item in ended] == [(), (("kept",),)]
    assert hw.replay(trace, ended[1]).metrics["failed"] == 0


@pytest.mark.parametrize(
    ("first", "traces", "problem"),
    [
        (
            'kind = "fixed"\nsite_class = "old"',
            True,
            "\"site_class\": 'old' is not valid; valid: none, short, long, equal",
        ),
        ('kind = "fixed"\nsite_class = "equal"', False, '"site_class" needs traces with call sites'),
        ('kind = "quick"\nup_to = 64\nsite_class = "equal"', True, "site_class"),
    ],
    ids=["value", "no traces", "lists"],
)
def test_what_a_space_cannot_have_is_told_in_one_line(first: str, traces: bool, problem: str, tmp_path: Path) -> None:
    with pytest.raises(hw.HeapwrightError) as raised:
        space(tmp_path, first, [made_trace()] if traces else [])
    assert problem in str(raised.value)
    assert "\n" not in str(raised.value)


def test_names_in_c_are_words_each_once() -> None:
    recipe = hw.Recipe.from_dict(
        {
            "pool": [
                {"kind": "general", "sites": ["a (b.c:1)", "a_b_c_1", "*"], "region": 512},
                {"kind": "general"},
            ]
        }
    )
    named = c_names(recipe.sites)
    assert named == [("A_B_C_1", 1, "a (b.c:1)"), ("A_B_C_1_2", 1, "a_b_c_1"), ("CLASS_1", 1, "*")]


def test_what_a_pool_says_itself_stays() -> None:
    mixed = SitesOfClass(("a", "b"), live_bytes=1000)
    assert pool_of_sites(mixed, {"kind": "fixed"}, 8) == {}
    own = {"kind": "fixed", "sizes": [16], "counts": [4]}
    assert pool_of_sites(mixed, own, 8) == {"sites": ["a", "b"], "sizes": [16], "counts": [4]}
    assert pool_of_sites(mixed, {"kind": "general"}, 8) == {"sites": ["a", "b"], "region": 1152}
