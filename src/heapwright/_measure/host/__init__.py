"""Time on this machine; the twin of `heapwright._measure.boards`."""
