"""What is proved of a generated heap: few calls in a small arena, bins for all sizes, a fixed pool without bounds."""
