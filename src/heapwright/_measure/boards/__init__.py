"""Heaps on the processor they are meant for: cross-compiled, replayed on an emulated core, counted call by call."""
