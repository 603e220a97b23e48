"""Heapwright tailors heaps: trace x recipe -> metrics, then C for the firmware."""

__version__ = "0.1.0"
