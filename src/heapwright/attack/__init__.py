"""Faults committed on heaps: which each level of checks notices, and when, on this machine and on an emulated core."""

from heapwright.attack.attack import attack

__all__ = ["attack"]
