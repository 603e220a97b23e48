"""Additions to the site: glossary terms show their meaning, and a search finds the guide for a topic first."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString

from heapwright._report import glossary


class Terms(Extension):  # type: ignore[misc]  # Markdown has no types
    """The first time that a page's text has a term of the glossary, it can be pointed at, and reached by keys.

    Attributes:
        known: the terms that the page has had, or explains itself.
    """

    known: set[str]

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Look for terms once links, code and the like are known."""
        md.treeprocessors.register(_Marking(self), "terms", 7)


class _Marking(Treeprocessor):  # type: ignore[misc]
    APART = ("a", "code", "pre", "th", *(f"h{level}" for level in range(1, 7)))

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def run(self, root: Element) -> None:
        self._look(root)

    def _look(self, element: Element) -> None:
        if element.tag in self.APART:
            return
        inside = self._split(element.text)
        element.text = inside[0]
        children = list(element)
        for child in children:
            self._look(child)
            behind = self._split(child.tail)
            child.tail = behind[0]
            at = list(element).index(child) + 1
            element[at:at] = behind[1]
        element[0:0] = inside[1]

    def _split(self, text: str | None) -> tuple[str | None, list[Element]]:
        """What stands before the first term, and the terms, each with what stands behind it."""
        if not text or isinstance(text, AtomicString):
            return text, []
        marks: list[Element] = []
        end = len(text)
        for place, meaning in reversed(list(glossary.found(text, self.terms.known))):
            mark = Element("abbr", title=meaning, tabindex="0")
            mark.text, mark.tail = text[place], text[place.stop : end]
            marks.insert(0, mark)
            end = place.start
        return text[:end], marks


TERMS = Terms()


def on_config(config: Any) -> Any:
    """Let every page have the terms."""
    config.markdown_extensions.append(TERMS)
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> None:
    """Give a page the words that lead to it: they stand in the index, and weigh more than any text."""
    TERMS.known = set(glossary.terms()) if page.file.name == "glossary" else set()
    page.meta["tags"] = config.extra["guides"].get(page.file.src_uri, [])


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Name the search, which the theme does by a script."""
    return _named(output)


def on_post_template(output: str, template_name: str, config: Any) -> str:
    """The same for the page that stands for missing ones."""
    return _named(output) if template_name.endswith(".html") else output


def _named(output: str) -> str:
    for which in ('role="dialog"', 'id="__search"'):
        output = output.replace(which, f'{which} aria-label="Search"')
    return output
