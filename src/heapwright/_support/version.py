"""The version, which stands in every file that is written; packaging reads it here, too."""

__version__ = "0.2.0"
