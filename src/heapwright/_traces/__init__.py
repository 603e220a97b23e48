"""What a program asked of its heap: traces, how they are read, recorded and characterised."""
