"""Kinds of pools, a module each with all that other packages need of it; `heapwright._recipes.pools` lists them.

A new kind is one file here and one in the core: `base` declares the interface, with the defaults that most kinds keep.
"""
