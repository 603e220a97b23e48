"""Heaps by name, from any source, and several of them side by side."""
