"""Time on this machine, as `heapwright._measure.boards` measures it on a board."""
