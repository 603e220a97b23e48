"""Faults committed on heaps: which each level of checks notices, and when; and exploits: which take control."""

from heapwright.assure.attack.attack import attack
from heapwright.assure.attack.exploits import exploit

__all__ = ["attack", "exploit"]
