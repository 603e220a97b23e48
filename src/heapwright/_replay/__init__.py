"""Trace x recipe -> metrics: the engine, its pictures, and the smallest arena."""
