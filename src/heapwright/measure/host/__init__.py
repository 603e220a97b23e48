"""Time on this machine; the twin of `heapwright.measure.boards`."""
