"""How many small changes to generated C does `heapwright prove` notice? The score over mutants of several heaps.

    .venv/bin/python research/mutation/mutants_generated.py [--mutants N] [--seed N] [HEAP...]

A mutant is app_heap.c with one change: a relation, an arithmetic or bit operator, a constant one off, a condition
negated, a statement left out, two arguments swapped. Any that do not compile, or whose object code at -O2 is that of
the heap, are dropped; all others count. Each meets the harness of edges, first by its properties alone, then with the
core next to it; and the proof of the bins' arithmetic. What survives is printed.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import heapwright as hw
from heapwright import Recipe
from heapwright._assure.proof.bins import check_bins, has_bins
from heapwright._assure.proof.prove import check_edges
from heapwright._generate import generated_files
from heapwright._support.errors import HeapwrightError

HEAPS = (
    "tlsf", "lea-2.7.2", "all-round", "half-fit", "first-fit-fast-free", "binary-buddy", "drr-proposed", "fixed-pool",
    "exact-bins", "small",
)  # fmt: skip

OPERATORS = {
    " < ": (" <= ",), " <= ": (" < ",), " > ": (" >= ",), " >= ": (" > ",), " == ": (" != ",), " != ": (" == ",),
    " + ": (" - ",), " - ": (" + ",), " & ": (" | ",), " | ": (" & ",), " << ": (" >> ",), " >> ": (" << ",),
    " && ": (" || ",), " || ": (" && ",), " += ": (" -= ",), " -= ": (" += ",), "~": ("",), "++;": ("--;",),
    "--;": ("++;",), " % ": (" / ",), " / ": (" * ",),
}  # fmt: skip

BEGIN, END = "/* Compares in a function of its own", "/* ---- entries that AddressSanitizer"

COMPILE = ("gcc", "-std=gnu11", "-O2", "-w", "-DAPP_HEAP_ALIGN_UNCHECKED", "-c", "app_heap.c")


class Mutant(NamedTuple):
    """One change of a line of app_heap.c, by number from 1."""

    line: int
    before: str
    after: str


def mutants(source: str) -> list[Mutant]:
    """All changes between the heap's first function and its last, and to the constants ahead."""
    lines = source.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(BEGIN))
    last = next((i for i, line in enumerate(lines) if line.startswith(END)), len(lines))
    results = []
    comment = False
    for number, line in enumerate(lines[:last], 1):
        comment = comment or line.lstrip().startswith("/*")
        code = line.split("/*")[0].rstrip()
        if not comment and number > first and not line.startswith(("#", " *")):
            results += [Mutant(number, code, after) for after in changes(code)]
        elif line.startswith("#define APP_") and "UINT32_C(" in code:
            results += [Mutant(number, code, after) for after in constants(code)]
        comment = comment and "*/" not in line
    return [item for item in results if item.before != item.after]


def changes(code: str) -> Iterator[str]:
    """What one line of C could have been."""
    for operator, others in OPERATORS.items():
        for match in re.finditer(re.escape(operator), code):
            yield from (code[: match.start()] + other + code[match.end() :] for other in others)
    yield from constants(code)
    if condition := re.match(r"(\s*(?:if|while) \()(.*)(\) \{)$", code):
        yield f"{condition[1]}!({condition[2]}){condition[3]}"
    if re.fullmatch(r"\s+[\w>.\-\[\]]+( [-+|&]?= .*|\(.*\)|\+\+|--);", code):
        yield re.match(r"\s*", code)[0] + ";"  # type: ignore[index]
    for match in re.finditer(r"(\w+\((?:h, )?)([\w.\->]+), ([\w.\->]+)(\))", code):
        yield code[: match.start()] + f"{match[1]}{match[3]}, {match[2]}{match[4]}" + code[match.end() :]


def constants(code: str) -> Iterator[str]:
    """A line with a number one more, or one less."""
    for match in re.finditer(r"(?<![\w.])(\d+)(?=u?\b)", code):
        value = int(match[1])
        for other in {value + 1, max(value - 1, 0)} - {value}:
            yield code[: match.start()] + str(other) + code[match.end() :]


def changed(source: str, mutant: Mutant) -> str:
    """The source with the mutant's line in place."""
    lines = source.splitlines()
    lines[mutant.line - 1] = lines[mutant.line - 1].replace(mutant.before, mutant.after, 1)
    return "\n".join(lines) + "\n"


def object_code(files: Mapping[str, str], folder: Path) -> bytes | None:
    """The object file at -O2, or None where it does not compile."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    done = subprocess.run([*COMPILE, "-o", "heap.o"], cwd=folder, capture_output=True)
    return None if done.returncode else (folder / "heap.o").read_bytes()


def killed_by(recipe: Recipe, files: Mapping[str, str]) -> str:
    """What notices a mutant: "properties", "bins", "comparison", or "" for nothing."""
    try:
        if check_edges(recipe, files, compared=False).failures:
            return "properties"
        if has_bins(recipe) and check_bins(recipe, files).failures:
            return "bins"
        return "comparison" if check_edges(recipe, files).failures else ""
    except HeapwrightError as error:  # it ended badly: a signal that no sanitizer reports
        return f"properties ({str(error)[:40]})" if "harness ended" in str(error) else ""


def score(heap: str, count: int, seed: int, told: Counter[str]) -> None:
    """Try this number of mutants of one heap."""
    recipe = hw.zoo(heap)
    files = generated_files(recipe)
    source = files["app_heap.c"]
    every = mutants(source)
    random.Random(f"{heap} {seed}").shuffle(every)
    tried = 0
    with tempfile.TemporaryDirectory() as folder:
        original = object_code(files, Path(folder))
        for mutant in every:
            if tried == count:
                break
            mutated = dict(files) | {"app_heap.c": changed(source, mutant)}
            code = object_code(mutated, Path(folder))
            if code is None or code == original:
                told["did not compile" if code is None else "same object code"] += 1
                continue
            tried += 1
            by = killed_by(recipe, mutated)
            told[by.partition(" ")[0] or "survived"] += 1
            if not by:
                print(f"survived {heap}:{mutant.line}: {mutant.before.strip()} => {mutant.after.strip()}", flush=True)
    print(f"{heap}: {tried} tried of {len(every)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heaps", nargs="*", metavar="HEAP", help="of the zoo (default: ten)")
    parser.add_argument("--mutants", type=int, default=200, metavar="N", help="of all heaps together (default: 200)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which are drawn (default: 1)")
    given = parser.parse_args()
    heaps = given.heaps or HEAPS
    output: Counter[str] = Counter()
    for place, heap in enumerate(heaps):
        share = given.mutants // len(heaps) + (place < given.mutants % len(heaps))
        score(heap, share, given.seed, output)
    by = {name: output[name] for name in ("properties", "bins", "comparison")}
    total = sum(by.values()) + output["survived"]
    if not total:
        sys.exit("no mutant was tried")
    print(f"{total} mutants; dropped: {output['same object code']} of the same object code, "
          f"{output['did not compile']} that do not compile")  # fmt: skip
    alone = by["properties"] + by["bins"]
    print(f"killed by properties {by['properties']}, by the bins' arithmetic {by['bins']}: {alone / total:.1%}")
    print(f"killed with the core next to it: {(alone + by['comparison']) / total:.1%}; survived: {output['survived']}")


if __name__ == "__main__":
    main()
