"""Faults committed on heaps: which each level of checks notices, and when; and exploits: which take control."""
