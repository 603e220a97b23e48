"""Many recipes on many traces: spaces, the search, and those who do it."""

from heapwright.files.rooms import answers_calls

answers_calls(__name__)
