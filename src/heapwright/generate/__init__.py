"""C for a program, from a recipe."""

from heapwright.generate.emit import generate, generated_files
from heapwright.rooms import answers_calls

__all__ = ["generate", "generated_files"]

answers_calls(__name__)
