"""Many recipes on many traces: spaces, the search, and those who do it."""
