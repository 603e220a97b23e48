"""The version, in one place: packaging reads it here, too."""

__version__ = "0.1.0"
