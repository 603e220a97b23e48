"""The words that this project once used and no one else does, and a scanner that reports where they occur.

Prose is scanned: Markdown without code, comments and docstrings of Python and C, and string literals with a blank in
them (one without is a key or a name). Plain text, as `--help` prints, is scanned as a whole.

    python tests/docs/dialect.py README.md docs src/heapwright/_replay    # path:line: word -> instead: the text
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

WORDS: tuple[tuple[str, str], ...] = (
    (r"dearest|dearer", "worst-case, more expensive"),
    (
        r"lasts|(?:does|do|did|must|should|would|can|could|may|will)(?: not|n't)? last(?! \w+ (?:call|time))",
        "is stable",
    ),
    (r"told|tells|tell|telling", "reports, prints, says"),
    (r"taken blind|(?:go|goes|try|tried) blind", "untuned baseline"),
    (r"doubt(?:s|ed|ful|ing)?", "low confidence"),
    (r"endur(?:e|es|ed|ing|ance)", "stress test, long run"),
    (r"stand-?ins?|stands? in for", "placeholder, stub"),
    (r"alike|likewise", "the same, also"),
    (r"besides?", "next to, compared with, with"),
    (r"so (?:many|large|much|few|often|long as)", "that many, N"),
    (r"whatever|whichever|wherever|whoever|whomever|nobody|somebody|everybody", "any, if, no one"),
    (r"(?:is|are|was|were|be) asked|asks? of|asked of", "requests"),
    (r"commit(?:s|ted|ting)? (?:a |the )?faults?", "injects a fault"),
    (r"wrong (?:pointer|free|address)(?:e?s)?", "invalid pointer"),
    (r"safe arenas?", "monotone minimum"),
    (r"how sure", "guarantee"),
    (r"films?|filmed", "animation, snapshots"),
    (r"twins?", "counterpart"),
    (r"(?<!designated.)victims?(?!\x20[\d\x00])", "last remainder"),  # "victim 1004" is of a recipe's summary
    (r"(?-i:Those of|That of|Those that|Those which|Those with)", "a noun"),
    (r"worst found|found worst", "worst measured, adversarial search result"),
    (r"taught", "portfolio"),
    (r"rivals?", "incumbents, competitors"),
    (r"hir(?:e|es|ed|ing)", "starts workers"),
    (r"spared|spares|sparing", "tolerated, saved"),
    (r"(?:gives?|gave|given|giving) (?:up|\w+ up)", "prunes, stops"),
    (r"rots?|rotted|rotten", "fragments, degrades"),
    (r"fore(?:tell|tells|told)", "predicts"),
    (r"anew", "again"),
    (r"youngest|born", "newest, allocated"),
    (r"by heart|in its stead|none but|save for|lest|thereof|hitherto|thrice|nought|naught", "plain words"),
    (r"sham|shams|feigned?|pretends?", "fake, simulated"),
    (r"pass(?:es|ed)? (?:no|whole|any|it|them|free)(?: \w+){0,3} by", "skips"),
    (r"mends?|mended|mending", "fixes"),
    (r"holds? good", "is valid"),
    (r"comes? with the load|live all along|served whole", "load-dependent, permanent, completed"),
    (
        r"(?:objects?|bytes|blocks?|all|those|one|what|sites?|most|more|nothing) (?:that|who|which) "
        r"(?:lives|live|lived)(?! (?:peak|bytes|blocks|in))|what lives|lives no more",
        "is allocated",
    ),
)
"""Patterns, whatever the case, and the field's words for them."""

SKIPPED = {"upgrading.md"}
"""Pages that name what a release replaced."""

_ANY = "|".join(rf"(?P<w{index}>(?:{pattern})(?![\w-]))" for index, (pattern, _) in enumerate(WORDS))
_PATTERN = re.compile(rf"\b(?=[a-z])(?<!-)(?:{_ANY})".replace(" ", r"\s+"), re.IGNORECASE)
_C = {".c", ".h", ".in", ".S", ".js", ".css", ".cpp", ".hpp"}
_HASH = {".yml", ".yaml", ".toml", ".sh", ".cmake", ""}
_C_PARTS = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_VALUES = re.compile(r"(?<!\{)\{[^{}]+\}")
_GAP = "\x00"


@dataclass(frozen=True)
class Finding:
    """A word of the dialect in a text: its line, and the field's word for it."""

    path: str
    line: int
    word: str
    instead: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word} -> {self.instead}: {self.text.strip()[:140]}"


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", _GAP, text)


def _without(pattern: str, text: str, flags: int = 0) -> str:
    return re.sub(pattern, lambda match: _blank(match.group()), text, flags=flags)


def markdown(text: str) -> str:
    """The prose of a page; what is no prose is NUL, so that lines stay where they are."""
    text = _without(r"^```.*?^```", text, re.DOTALL | re.MULTILINE)
    text = _without(r"<!--.*?-->", text, re.DOTALL)
    lines = text.split("\n")
    in_code = False
    for index, line in enumerate(lines):
        if line.strip():
            before = lines[index - 1].strip(_GAP + " ") if index else ""
            in_code = line.startswith("    ") and (in_code or not before)
            if in_code:
                lines[index] = _blank(line)
    text = _without(r"`[^`]*`", "\n".join(lines))
    return _without(r"\]\([^)]*\)|</?[a-z][^>]*>", text)


def _kept(source: str, spans: Iterable[tuple[int, int]]) -> str:
    """A source in which all but some spans is NUL, but for white space."""
    output = list(re.sub(r"\S", _GAP, source))
    for begin, end in spans:
        output[begin:end] = source[begin:end]
    return "".join(output)


def python(source: str) -> str:
    """Comments, docstrings and string literals of words."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    spans = []
    values = []
    kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in kinds and re.search(r"\S\s+\S", token.string):
            begin = starts[token.start[0] - 1] + token.start[1]
            spans.append((begin, starts[token.end[0] - 1] + token.end[1]))
            if re.match(r"[rbuRBU]*[fF]", token.string):
                values += [
                    (begin + match.start(), match.end() - match.start()) for match in _VALUES.finditer(token.string)
                ]
    kept = _kept(source, spans)
    for begin, length in values:
        kept = kept[:begin] + _blank(kept[begin : begin + length]) + kept[begin + length :]
    kept = _without(r"`[^`\n]*`", kept)
    return re.sub(r"(?<=\s)#|^#", " ", kept, flags=re.MULTILINE)


def c(source: str) -> str:
    """Comments and string literals of words."""
    spans = [match.span() for match in _C_PARTS.finditer(source) if re.search(r"\S\s+\S", match.group())]
    return re.sub(r"(?<=\s)(?:\*|//)(?=\s)", " ", _kept(source, spans))


def shell(source: str) -> str:
    """Comments that begin with #."""
    return _kept(source, (match.span() for match in re.finditer(r"(?:(?<=\s)|^)#.*", source)))


def findings(text: str, path: str = "") -> Iterator[Finding]:
    """Words of the dialect in plain text."""
    lines = text.split("\n")
    for match in _PATTERN.finditer(text):
        line = text.count("\n", 0, match.start())
        assert match.lastgroup
        instead = WORDS[int(match.lastgroup[1:])][1]
        shown = lines[line].replace(_GAP, "")
        yield Finding(path, line + 1, re.sub(r"\s+", " ", match.group()), instead, shown)


def prose(path: Path) -> str:
    """What people read in a file."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return markdown(source)
    if path.suffix in (".py", ".pyi"):
        return python(source)
    if path.suffix in _C:
        return c(source)
    return shell(source) if path.suffix in _HASH else ""


def files(path: Path) -> Iterator[Path]:
    """The texts of a folder, or a file itself."""
    if path.is_file():
        yield path
        return
    for item in sorted(path.rglob("*")):
        hidden = any(part.startswith(".") or part in ("__pycache__", "build") for part in item.parts)
        if item.is_file() and not hidden and item.name not in SKIPPED and item.suffix in {".md", ".py", ".pyi", *_C}:
            yield item


def scan(paths: Iterable[Path]) -> list[Finding]:
    """The words of the dialect in files and folders."""
    return [item for path in paths for file in files(path) for item in findings(prose(file), str(file))]


if __name__ == "__main__":
    results = scan(map(Path, sys.argv[1:]))
    print(*results, sep="\n")
    sys.exit(f"{len(results)} words of the dialect" if results else 0)
