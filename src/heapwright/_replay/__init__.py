"""Replay of a trace on a recipe: the engine, its metrics and pictures, and arena sizes."""
