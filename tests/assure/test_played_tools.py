"""Calls of compilers, provers and attacks, and how what they print is read: a function simulates the tools."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import heapwright as hw
from heapwright._assure.attack import attack, exploits, on_host
from heapwright._assure.attack.faults import FAULTS, OUTCOMES
from heapwright._assure.proof import bins, cbmc, edges, enumeration, prove, unbounded
from heapwright._recipes.policy import policy
from heapwright._recipes.recipe import Recipe
from heapwright._support.errors import HeapwrightError

Answer = Callable[[list[str], Path], tuple[int, str, str]]
SMALL = "first-fit-fast-free"
HEADERLESS = ("forged_size", "forged_footer", "moved_top", "null_byte", "neighbour_header")
"""Techniques that begin with a header, which fixed pools found by address have not."""


@cache
def files_of(recipe: Recipe) -> dict[str, str]:
    return hw.generated_files(recipe)


class Tools:
    """Simulates any command: `answer` says how it ends and what it prints."""

    def __init__(self, answer: Answer) -> None:
        self.asked: list[list[str]] = []
        self.answer = answer

    def __call__(
        self, command: Sequence[Any], folder: Path | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        words = [str(word) for word in command]
        self.asked.append([Path(word).name for word in words])
        code, output, errors = self.answer(words, Path(options.get("cwd") or folder or "."))
        printed: tuple[Any, Any] = (output, errors) if options.get("text") else (output.encode(), errors.encode())
        return subprocess.CompletedProcess(words, code, *printed)


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], Tools]:
    def begin(answer: Answer) -> Tools:
        tools = Tools(answer)
        for module in (bins, cbmc, enumeration, unbounded, on_host, exploits):
            monkeypatch.setattr(module, "run_tool", tools)
        for module in (bins, enumeration, on_host, exploits, prove):
            monkeypatch.setattr(module, "find_compiler", lambda what: "cc")
        for module in (on_host, exploits):  # nothing compiles it
            monkeypatch.setattr(module, "generate", lambda recipe, folder, prefix: folder.mkdir(parents=True))
        for module in (prove, unbounded):
            monkeypatch.setattr(module, "generated_files", files_of)
        monkeypatch.setattr("shutil.which", lambda name, path=None: f"/usr/bin/{name}")
        return tools

    return begin


# ---- proofs by enumeration -----------------------------------------------------------------------------------------


def enumerated(words: list[str], folder: Path) -> tuple[int, str, str]:
    if "--version" in words:
        return 0, "cc 12.2\nmore\n", ""
    if words[0] == "cc":
        return 0, "", ""
    if words[0].endswith("bins"):
        return 0, "failed 24 a bin holds its sizes\ndone\n", ""
    return 0, "programs 12\nfailed objects do not overlap\ncall 1 0 24 0\ncall 2 0 0 0\ncall 4 1 8 0\n", ""


def test_a_proof_by_enumeration_tells_the_calls_that_show_a_failure(play: Callable[[Answer], Tools]) -> None:
    tools = play(enumerated)
    output: list[str] = []
    proof = prove.prove(hw.zoo("tlsf"), "mine", calls=2, largest=9, progress=output.append)
    assert output == ["calls", "calloc", "realloc", "aligned_alloc", "edges", "bins"]
    assert [harness.name for harness in proof.harnesses] == output
    assert (proof.method, proof.tool, proof.calls, proof.largest) == ("enumeration", "cc 12.2", 2, 9)
    shown = {"objects do not overlap": ["malloc 24 -> #1", "free #1", "realloc #2 8"]}
    assert [harness.failures for harness in proof.harnesses] == [shown] * 5 + [{"a bin holds its sizes": ["size 24"]}]
    assert [harness.programs for harness in proof.harnesses] == [12] * 5 + [None]
    assert proof.failed == 6 and proof.properties == sum(harness.properties for harness in proof.harnesses) > 60
    assert proof.verdict == (
        "FAIL mine calls: objects do not overlap (and 5 more): malloc 24 -> #1; free #1; realloc #2 8"
    )
    assert proof.seconds == round(sum(harness.seconds for harness in proof.harnesses), 1)
    assert proof.as_json()["failed"] == 6 and proof.as_json()["arena_bytes"] == proof.arena
    built = [command for command in tools.asked if "-o" in command]
    assert all("-fsanitize=address,undefined" in command for command in built[:-1])
    beside = next(command for command in tools.asked if "-c" in command)
    assert beside[-1] == "core.c" and "-fsanitize=address,undefined" not in beside  # the core needs no looking after
    assert next(item for item in built if "core.o" in item)[-4:] == ["harness.c", "core.o", "-o", "harness"]
    assert built[-1][-3:] == ["bins.c", "-o", "bins"]


def test_a_proof_in_which_nothing_fails_says_so_in_one_line(play: Callable[[Answer], Tools]) -> None:
    play(lambda words, folder: (0, "programs 5\ndone\n", ""))
    proof = prove.prove(hw.zoo(SMALL), "mine", calls=2, method="enumeration", largest=4)
    assert proof.failed == 0
    assert proof.verdict == f"ok mine: {proof.properties} properties hold after any 2 calls"


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ("==1==ERROR: AddressSanitizer: heap-buffer-overflow\n #0 app_malloc app_heap.c:12",
         "heap-buffer-overflow (app_heap.c:12)"),
        ("app_heap_checks.h:7: runtime error: shift exponent 40 is too large",
         "shift exponent 40 is too large (app_heap_checks.h:7)"),
        ("something  else", "something else (?)"),
    ],
)  # fmt: skip
def test_what_a_sanitizer_says_is_told_with_its_place(
    errors: str, told: str, play: Callable[[Answer], Tools], tmp_path: Path
) -> None:
    play(lambda words, folder: (0, "", "") if words[0] == "cc" else (1, "failed sanitizer\ncall 1 0 8 0\n", errors))
    source = tmp_path / "harness.c"
    source.write_text('prove(a, "one"); prove(b,\n "two"); prove(c, "one");')
    result = enumeration.run_all(source)
    assert result.failed == {f"sanitizer: {told}": [{"call": 1, "object": 0, "size": 8, "alignment": 0}]}
    assert (result.programs, result.properties) == (0, 2 + 4)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((1, "", "no  such\nflag"), "cc: cannot build with -fsanitize=address: no such flag"),
        ((0, "", ""), "the harness ended with 0: "),
    ],
)
def test_a_harness_that_says_nothing_is_no_proof(
    answer: tuple[int, str, str], message: str, play: Callable[[Answer], Tools], tmp_path: Path
) -> None:
    play(lambda words, folder: answer)
    (tmp_path / "harness.c").write_text("")
    with pytest.raises(HeapwrightError) as raised:
        enumeration.run_all(tmp_path / "harness.c")
    assert str(raised.value) == message


def test_a_harness_that_ends_badly_after_its_programs_is_no_proof(
    play: Callable[[Answer], Tools], tmp_path: Path
) -> None:
    play(lambda words, folder: (0, "", "") if words[0] == "cc" else (3, "programs 9\n", "killed"))
    (tmp_path / "harness.c").write_text("")
    with pytest.raises(HeapwrightError, match="the harness ended with 3: killed"):
        enumeration.run_all(tmp_path / "harness.c")


@pytest.mark.parametrize(
    ("answer", "failed"),
    [((0, "done", ""), {}), ((0, "", ""), {"bins: the functions return": ["ended with 0"]}),
     ((-11, "done", ""), {"bins: the functions return": ["ended with -11"]})],
)  # fmt: skip
def test_the_loop_over_bins_has_to_come_to_its_end(
    answer: tuple[int, str, str], failed: dict[str, list[str]], play: Callable[[Answer], Tools]
) -> None:
    play(lambda words, folder: (0, "", "") if words[0] == "cc" else answer)
    recipe = hw.zoo("tlsf")
    result = bins.check_bins(recipe, files_of(recipe))
    assert result.failures == failed
    ((its,), reach) = (policy(recipe)[key] for key in ("pools", "reach"))
    output = bins.bin_names(its["general"], int(reach))
    sizes = len(range(output["least"], output["last"] + 1, output["step"]))
    assert result.bounds.startswith(
        f"all {sizes:,} sizes of blocks from {output['least']:,} to {output['last']:,} bytes"
    )


def test_bins_that_do_not_compile_are_no_proof(play: Callable[[Answer], Tools]) -> None:
    play(lambda words, folder: (1, "", "no  such\n" + "x" * 400))
    with pytest.raises(HeapwrightError) as raised:
        bins.check_bins(hw.zoo("tlsf"), files_of(hw.zoo("tlsf")))
    assert str(raised.value) == f"cc: cannot build the proof of bins: no such {'x' * 292}"


def test_lists_that_an_arena_never_has_are_left_out_as_far_as_the_recipe_allows() -> None:
    """The reach of the narrowed heap holds the arena; where links of two bytes end before, the recipe stays."""
    result = prove.narrow(hw.zoo("tlsf"), 500)
    values = policy(result)
    assert (
        values["reach"] >= values["fixed_end"] + 500 + 16 and policy(hw.zoo("tlsf"))["fixed_end"] > values["fixed_end"]
    )
    short = Recipe.from_dict({"link_bytes": 2, "pool": [{"kind": "general", "bins": "two-level"}]})
    assert prove.narrow(short, 1 << 24) == short


def test_bounds_that_allow_too_many_programs_and_arenas_that_are_too_small_are_refused(
    play: Callable[[Answer], Tools],
) -> None:
    tools = play(enumerated)
    with pytest.raises(HeapwrightError, match=r"mine: up to [\d,]+ programs to run, at most 20,000,000,000 are"):
        prove.prove(hw.zoo(SMALL), "mine", calls=9, method="enumeration", largest=4000)
    with pytest.raises(HeapwrightError, match=r"mine: 8 bytes of arena; its own data takes \d+"):
        prove.prove(hw.zoo("tlsf"), "mine", arena=8)
    with pytest.raises(HeapwrightError, match="'guess' is no method; valid: cbmc, enumeration"):
        prove.prove(hw.zoo(SMALL), "mine", method="guess")
    assert all("--version" in command for command in tools.asked)


# ---- model checking ------------------------------------------------------------------------------------------------


def checked(words: list[str], folder: Path) -> tuple[int, str, str]:
    if "--version" in words:
        return 0, "6.6.0 (cbmc-6.6.0)\n", ""
    if "--show-loops" in words:
        text = (folder / "harness.c").read_text(encoding="utf-8").splitlines()
        data = next(number for number, line in enumerate(text, 1) if "while" in line or "for (" in line)
        loops = [{"name": "main.0", "sourceLocation": {"file": "harness.c", "line": str(data)}}]
        return 0, json.dumps([{"program": "CBMC"}, {"loops": loops}]), ""
    bound = words[words.index("--unwindset") + 1] if "--unwindset" in words else ""
    short = {"property": "find.unwind.1", "status": "FAILURE", "description": "unwinding"}
    wrong = {"property": "a.1", "status": "FAILURE", "description": "no overlap", "trace": [],
             "sourceLocation": {"file": "app_heap.c", "line": "9"}}  # fmt: skip
    right = {"property": "a.2", "status": "SUCCESS", "description": "aligned"}
    return 10, json.dumps([{"result": [wrong, right] if "find.1:8" in bound else [wrong, short, right]}]), ""


def test_a_loop_is_unwound_until_it_ends(play: Callable[[Answer], Tools], tmp_path: Path) -> None:
    tools = play(checked)
    (tmp_path / "harness.c").write_text("for (i = 0; i < MOST; i++)\nwhile (next) {}\n")
    verdict = cbmc.verify(tmp_path / "harness.c", 4)
    assert (verdict.properties, verdict.failed) == (2, {"no overlap (app_heap.c:9)": []})
    assert verdict.unwinding == {"find.1": 8}  # four, and as many again; main.0 counts to a constant
    assert [item[-1] for item in tools.asked] == ["--show-loops", "--trace", "find.1:8"]
    flags = ["--unwinding-assertions", "--drop-unused-functions", "--json-ui"]
    assert all(item[:5] == ["cbmc", "harness.c", *flags] for item in tools.asked)
    (tmp_path / "harness.c").write_text("while (next) {}\n")
    assert cbmc.verify(tmp_path / "harness.c", 4).unwinding == {"main.0": 4, "find.1": 8}
    assert cbmc.cbmc_version() == "6.6.0"


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("no JSON", f"cbmc: failed (6): out of {'m' * 293}"),  # 300 characters of it
        ('[{"messageType": "ERROR", "messageText": "syntax"}, {"messageType": "ERROR", "messageText": "stop"}]',
         "cbmc: syntax; stop"),
        ('[{"messageType": "STATUS", "messageText": "x"}]', "cbmc: ended without a result; is there memory enough?"),
    ],
)  # fmt: skip
def test_a_model_checker_that_gives_up_is_no_proof(
    output: str, message: str, play: Callable[[Answer], Tools], tmp_path: Path
) -> None:
    play(lambda words, folder: (6, output, "out of\n" + "m" * 400))
    (tmp_path / "harness.c").write_text("")
    with pytest.raises(HeapwrightError) as raised:
        cbmc.verify(tmp_path / "harness.c", 4)
    assert str(raised.value) == message


# ---- contracts -----------------------------------------------------------------------------------------------------

VERSIONS = {"frama-c": "25.0 (Manganese)", "z3": "Z3 version 4.8.12 - 64 bit", "cvc5": "This is cvc5 version 1.0.3"}


def proved(lines: str) -> Answer:
    def answer(words: list[str], folder: Path) -> tuple[int, str, str]:
        if words[-1] in ("-version", "--version"):
            return 0, VERSIONS[words[0]], ""
        assert {"app_heap.c", "app_heap.h", "why3.conf"} <= {file.name for file in folder.iterdir()}
        assert set(files_of(hw.zoo("fixed-pool"))) <= {file.name for file in folder.iterdir()}
        return 0, lines, ""

    return answer


@pytest.mark.parametrize(
    ("lines", "goals", "failed"),
    [
        ("[wp] Proved goals:   40 / 40", 40, {}),
        ("[wp] Proved goals:   38 / 40", 40, {"goals that were not proved": []}),
        ("[wp] [Timeout] Goal typed_cast_app_free_ensures\n[wp] [Z3] Goal typed_cast_app_malloc_loop : Unknown\n"
         "[wp] [Qed] Goal typed_cast_app_init : Valid\n[wp] Proved goals:   38 / 40",
         40, {"app_free_ensures": [], "app_malloc_loop": []}),
    ],
)  # fmt: skip
def test_goals_that_no_prover_proves_are_named(
    lines: str, goals: int, failed: dict[str, list[str]], play: Callable[[Answer], Tools]
) -> None:
    tools = play(proved(lines))
    proof = prove.prove_unbounded(hw.zoo("fixed-pool"), "mine")
    (harness,) = proof.harnesses
    assert (harness.properties, harness.failures, proof.tool) == (goals, failed, "Frama-C 25.0, Z3 4.8.12, cvc5 1.0.3")
    assert (proof.calls, proof.method, proof.largest) == (0, "wp", hw.pools.MAX_REQUEST)
    assert failed or proof.verdict == "ok mine: 40 properties hold after any calls"
    command = tools.asked[-1]
    assert command[command.index("-wp-prover") + 1] == "z3nobv,cvc5,z3,cvc5plain"
    assert command[command.index("-wp-timeout") + 1 :][:3] == ["60", "-wp-par", "2"]
    assert "app_malloc" in command[command.index("-wp-fct") + 1].split(",")


def test_a_prover_that_ends_without_a_count_is_no_proof(play: Callable[[Answer], Tools]) -> None:
    play(proved("[kernel]  parse error"))
    with pytest.raises(HeapwrightError, match=r"frama-c: ended with 0: \[kernel\] parse error"):
        prove.prove_unbounded(hw.zoo("fixed-pool"), "mine")
    with pytest.raises(HeapwrightError, match="mine: has no contracts; one fixed pool has"):
        prove.prove_unbounded(hw.zoo("tlsf"), "mine")


# ---- attacks -------------------------------------------------------------------------------------------------------


def test_the_outcomes_of_every_fault_are_told_by_name(play: Callable[[Answer], Tools]) -> None:
    lines = "".join(f"{fault} 30 {fault} 1 2 3 4 11 {fault} 6 2\n" for fault in range(len(FAULTS)))
    tools = play(lambda words, folder: (0, "" if words[0] == "cc" else lines, ""))
    result = attack.attack(hw.zoo("tlsf"), runs=30, seed=7, checks=["none", "frees"])
    assert [(item["heap"], item["checks"], item["cpu"]) for item in result] == [
        ("tlsf", "none", None),
        ("tlsf", "frees", None),
    ]
    for item in result:
        assert list(item["faults"]) == list(FAULTS)
        for number, name in enumerate(FAULTS):
            assert item["faults"][name] == {"runs": 30, **dict(zip(OUTCOMES, (number, 1, 2, 3, 4), strict=True))}
    compiled, ran, *_ = tools.asked
    assert compiled[-2:] == ["on_host.c", "attacked_heap.c"] and "-O1" in compiled
    assert ran[:2] == ["attack", "calls"] and ran[-2:] == ["30", "7"] and int(ran[2]) > 65536
    (_, _, signals), *_ = on_host.outcomes(lines)
    assert signals == {11: 0, 6: 2}


def test_each_technique_is_told_with_the_worst_that_came_of_it(play: Callable[[Answer], Tools]) -> None:
    counts = {0: "5 5 0 0 0 0 0 0 0 0", 1: "2 3 4 1 0 0 0 0 1 0", 2: "0 9 0 0 1 0 0 4 1 8", 3: "0 4 6 0 0 0 0 0 0 0",
              4: "10 0 0 0 0 0 0 0 0 0"}  # fmt: skip
    lines = "".join(f"{technique} {numbers}\n" for technique, numbers in counts.items())
    tools = play(lambda words, folder: (0, "" if words[0] == "cc" else lines, ""))
    (result,) = exploits.exploit(hw.zoo("lea-2.7.2"), checks=["none"], widths=[32], trials=10, seed=3)
    assert (result["heap"], result["checks"], result["width"]) == ("lea-2.7.2", "none", 32)
    output = result["exploits"]
    assert [output[name]["result"] for name in exploits.TECHNIQUES[:5]] == [
        "harmless", "crash", "control", "stopped", "does not apply",
    ]  # fmt: skip
    assert output["forged_size"] == {
        "control": None, "result": "crash", "noticed": True, "trials": 8, "trial": None, "stopped": 4, "crashed": 1,
        "reason": None,
    }  # fmt: skip
    assert (output["forged_link"]["control"], output["forged_link"]["trial"]) == ("overlap", 8)
    assert output["moved_top"]["reason"] == "no trial found the state that it begins with"
    assert {"exploits.c", "attacked_heap.c"} <= set(tools.asked[0]) and tools.asked[0][-2:] == ["-o", "exploits"]
    assert "-m32" in tools.asked[0] and "-DATTACKED_GENERATED" in tools.asked[0] and "-std=c11" not in tools.asked[0]
    assert tools.asked[1][-2:] == ["10", "3"]


def test_both_widths_of_pointers_are_tried_where_the_compiler_builds_them(play: Callable[[Answer], Tools]) -> None:
    play(lambda words, folder: (int("-m32" in words), "", "") if words[0] == "cc" else (0, "", ""))
    assert [item["width"] for item in exploits.exploit(hw.zoo("tlsf"), checks=["none"])] == [64]
    play(lambda words, folder: (1, "", "no"))
    with pytest.raises(HeapwrightError, match="cc builds neither 32-bit nor 64-bit programs here"):
        exploits.exploit(hw.zoo("tlsf"))


def test_an_attack_that_does_not_run_says_why(play: Callable[[Answer], Tools]) -> None:
    play(lambda words, folder: (1, "", "x" * 600 + "the end\n"))
    with pytest.raises(HeapwrightError, match=r"the attack does not compile: x{493}the end$"):
        attack.attack(hw.zoo("tlsf"), checks=["none"])
    play(lambda words, folder: (0, "", "") if words[0] == "cc" else (4, "", "trap"))
    with pytest.raises(HeapwrightError, match="the attack failed: trap"):
        attack.attack(hw.zoo("tlsf"), checks=["none"])
    with pytest.raises(HeapwrightError, match="'all' is no level of checks; valid: none, frees, neighbours, full"):
        attack.attack(hw.zoo("tlsf"), checks=["all"])


# ---- what runs nothing ---------------------------------------------------------------------------------------------


def test_only_what_is_told_of_a_call_is_read_from_a_counterexample() -> None:
    def step(**more: Any) -> dict[str, Any]:
        return {"stepType": "assignment", "assignmentType": "actual-parameter", **more}

    def value(number: int) -> dict[str, str]:
        return {"binary": f"{number:032b}"}

    def entered(name: str) -> dict[str, Any]:
        return {"stepType": "function-call", "function": {"displayName": name}}

    ahead = step(lhs="size", value=value(9))
    trace = [
        ahead,
        entered("other"),
        entered("told"),
        step(lhs="call", value=value(1)),
        step(lhs="size", value=value(24)),
    ]
    trace += [step(lhs="heap", value=value(5)), {"assignmentType": "variable", "lhs": "size", "value": value(7)}]
    trace += [entered("told"), step(lhs="object", value=value(3)), step(lhs="alignment", value=value(64))]
    assert cbmc.told_calls(trace) == [{"call": 1, "size": 24}, {"object": 3, "alignment": 64}]


def test_objects_that_move_are_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "_tool", lambda method: "cc")
    with pytest.raises(HeapwrightError, match="mine: moves its objects; prove takes heaps that leave them"):
        prove.prove(hw.zoo("contiki-mmem"), "mine")


def test_arenas_of_edges_hold_the_heaps_own_data_and_the_rooms() -> None:
    recipe = hw.zoo("tlsf")
    values = policy(recipe)
    output = edges.edge_names(recipe, values, compared=True)
    least = -(-int(values["fixed_end"]) // 16) * 16
    assert output["arenas"] == [least + room for room in edges.ROOMS]
    assert (output["fixed_end"], output["covers"]) == (values["fixed_end"], 1)
    assert output["compared"] and output["bytewise"] and output["merges"] and output["fills"]
    short = Recipe.from_dict({"link_bytes": 2, "pool": [{"kind": "general"}]})
    output = edges.edge_names(short, policy(short), compared=False)
    assert max(output["arenas"]) == policy(short)["reach"] and not output["compared"]
    assert edges.initialiser({"a": 1, "b": [], "c": {"d": [1, 2], "e": {}}}) == "{.a = 1u, .c = {.d = {1u, 2u}}}"


def test_who_needs_a_compiler_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    tlsf = hw.zoo("tlsf")
    needing: list[tuple[str, Callable[[], object]]] = [
        ("an attack", lambda: attack.attack(tlsf)),
        ("an attack", lambda: exploits.exploit(tlsf)),
        ("a proof of bins", lambda: bins.check_bins(tlsf, files_of(tlsf))),
        ("a proof by enumeration", lambda: enumeration.run_all(tmp_path / "harness.c")),
    ]
    for what, call in needing:
        with pytest.raises(HeapwrightError, match=f"no-such-compiler: no such C compiler, and {what} needs one"):
            call()


@pytest.mark.parametrize(
    ("pool", "apart"),
    [
        ({"kind": "general"}, set()),
        ({"kind": "general", "free_list": "single"}, {"unsafe_unlink"}),
        ({"kind": "general", "free_list": "implicit"}, {"unsafe_unlink", "forged_link", "bent_bitmap"}),
        ({"kind": "fixed", "sizes": [64], "counts": [4]}, {*HEADERLESS, "unsafe_unlink"}),
        (
            {"kind": "fixed", "sizes": [64], "counts": [4], "find": "first-fit"},
            {*HEADERLESS, "unsafe_unlink", "forged_link"},
        ),
    ],
)
def test_a_technique_has_no_meaning_where_nothing_lies_that_it_forges(pool: dict[str, Any], apart: set[str]) -> None:
    recipe = Recipe.from_dict({"pool": [pool]})
    assert {name for name in exploits.TECHNIQUES if exploits.why_not(name, recipe)} == apart


def test_techniques_have_the_names_of_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "hardening.md").read_text(encoding="utf-8")
    assert [name for name in exploits.TECHNIQUES if f"| `{name}` |" not in page] == []
    assert len(set(exploits.TECHNIQUES)) == 13
    assert OUTCOMES == ("at_once", "later", "harmless", "silent", "crashed")


def test_every_level_that_a_heap_can_have_is_attacked() -> None:
    assert [item.checks for item in attack.levels(hw.zoo("tlsf"), None)] == ["none", "frees", "neighbours", "full"]
    assert [item.checks for item in attack.levels(hw.zoo("tlsf"), ["full", "none"])] == ["full", "none"]
