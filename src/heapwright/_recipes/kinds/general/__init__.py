"""Blocks of any size, each with a header: keys and sizes, rules, bounds, and the pool with its answers."""
