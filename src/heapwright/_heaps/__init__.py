"""Heaps by name, wherever they come from, and several of them side by side."""
