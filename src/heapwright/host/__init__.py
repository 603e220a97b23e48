"""Time on this machine; the twin of `heapwright.target`."""
