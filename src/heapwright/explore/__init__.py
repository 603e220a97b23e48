"""Many recipes on many traces: spaces, the search, studies, fronts and picks."""
