"""Support for all packages: atomic writing of files, databases, subprocesses, errors and units."""
