"""C for a program, from a recipe."""

from heapwright.generate.emit import generate, generated_files

__all__ = ["generate", "generated_files"]
