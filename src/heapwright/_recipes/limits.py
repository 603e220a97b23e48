"""Limits: how large requests, arenas, pools and lists may be, in bytes and in numbers."""

from __future__ import annotations

from heapwright._native import lib

MAX_REQUEST = lib.HW_MAX_REQUEST
"""Largest request in bytes that the core serves, so that no 32-bit sum of sizes overflows."""

MAX_REACH = 1 << 31
"""No arena is larger: offsets have 32 bits and sums of two sizes must not overflow."""

MAX_CLASSES = lib.HW_MAX_CLASSES

MAX_UP_TO = 4096

MAX_MEMORIES = 4
"""Each is tried in turn, and checks each freed address."""

MEMORY_NAME = "^[a-z][a-z0-9]{0,30}$"
"""What a memory may be called: part of a C name."""

MAX_POOLS = lib.HW_MAX_POOLS

MAX_SITES = 256
"""Call sites that one pool names."""
