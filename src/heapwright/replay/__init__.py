"""Trace x recipe -> metrics: the engine, its pictures, and the smallest arena."""

from heapwright.files.rooms import answers_calls

answers_calls(__name__)
