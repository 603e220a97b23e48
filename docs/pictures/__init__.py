"""The manual's pictures, drawn from what the tool computes: `make pictures`."""
