"""C for a program, from a recipe."""
