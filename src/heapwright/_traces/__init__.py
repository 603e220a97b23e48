"""Traces of heap calls: recording, reading, conversion and characterisation."""
