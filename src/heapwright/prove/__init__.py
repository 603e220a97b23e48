"""What is proved of a generated heap: any few calls in a small arena, by the bounded model checker CBMC."""
