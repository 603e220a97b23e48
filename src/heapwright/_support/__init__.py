"""What all rooms stand on: files, written whole or not at all, tools that write them, errors, rooms that are called."""
