"""Third-party allocators: how to build and call one, and what it does on a trace."""
