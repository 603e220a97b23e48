"""Somebody else's allocators: how to build and call one, and what it does on a trace."""
