"""The errors a person can act on. A command turns each into one line on stderr and exit code 1."""


class HeapwrightError(Exception):
    """Input that cannot be used: the message says what, where, and what would be valid, in one line."""
