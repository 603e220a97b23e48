"""The kinds of pools, a file each that answers whatever a room asks of it; `heapwright._recipes.pools` lists them.

A new kind is one file here and one in the core: `base` has the questions, with the answers that most kinds give.
"""
