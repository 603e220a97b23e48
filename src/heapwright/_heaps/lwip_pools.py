"""lwIP's own pools in a trace: which objects are of which pool, and the lines of lwipopts.h that size them.

The hooks of `lwip` record the heap and the pools. With call sites each pool's objects have the name of its descriptor
(`memp_TCP_PCB`), or of the function that alone allocates from it. Without them sizes decide: those of lwIP 2.1.3 and
2.2.1 on 32 bits, if the trace has control blocks of TCP or UDP of one of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heapwright._support.names import printable
from heapwright._traces.size_uses import most_at_once, sizes_of_objects, without_objects
from heapwright._traces.trace import Trace
from heapwright._traces.validation import CALLOC

PBUF_POOL = "PBUF_POOL"
PBUF_BYTES = 16
"""Of a `struct pbuf`, in front of the payload of an element of PBUF_POOL."""
SMALL_HEAP = 64_000
"""Bytes of MEM_SIZE up to which lwIP's heap has indices of 2 bytes: the reference allocator `lwip-mem`."""
_FEWEST_PACKETS = 10
_PACKET_SIZES = range(128, 1700)
"""Sizes that an element of PBUF_POOL may have, if no call site says so: its least number of objects, its bytes."""

FUNCTIONS = {
    "raw_new": "RAW_PCB",
    "udp_new": "UDP_PCB",
    "tcp_alloc": "TCP_PCB",
    "tcp_listen_with_backlog_and_err": "TCP_PCB_LISTEN",
    "tcp_create_segment": "TCP_SEG",
    "tcp_seg_copy": "TCP_SEG",
    "altcp_alloc": "ALTCP_PCB",
    "ip_reass_enqueue_new_datagram": "REASSDATA",
    "ip_frag_alloc_pbuf_custom_ref": "FRAG_PBUF",
    "ip6_frag_alloc_pbuf_custom_ref": "FRAG_PBUF",
    "netbuf_new": "NETBUF",
    "netconn_alloc": "NETCONN",
    "tcpip_inpkt": "TCPIP_MSG_INPKT",
    "tcpip_callback": "TCPIP_MSG_API",
    "tcpip_try_callback": "TCPIP_MSG_API",
    "tcpip_callbackmsg_new": "TCPIP_MSG_API",
    "tcpip_timeout": "TCPIP_MSG_API",
    "etharp_query": "ARP_QUEUE",
    "igmp_lookup_group": "IGMP_GROUP",
    "sys_timeout_abs": "SYS_TIMEOUT",
    "sys_timeout": "SYS_TIMEOUT",
    "mld6_new_group": "MLD6_GROUP",
    "nd6_queue_packet": "ND6_QUEUE",
    "pbuf_alloc_reference": "PBUF",
}
"""Functions of lwIP 2.1 and 2.2 that allocate from one pool alone."""

SIZES: dict[str, dict[int, tuple[str, ...]]] = {
    "IPv4": {
        16: ("TCP_SEG", "PBUF", "NETBUF", "TCPIP_MSG_INPKT", "TCPIP_MSG_API", "SYS_TIMEOUT", "IGMP_GROUP"),
        24: ("FRAG_PBUF",),
        28: ("TCP_PCB_LISTEN",),
        32: ("REASSDATA",),
        40: ("UDP_PCB", "NETCONN"),
        156: ("TCP_PCB",),
    },
    "IPv4 and IPv6": {
        8: ("ND6_QUEUE",),
        16: ("TCP_SEG", "PBUF", "TCPIP_MSG_INPKT", "TCPIP_MSG_API", "SYS_TIMEOUT", "IGMP_GROUP"),
        24: ("FRAG_PBUF",),
        32: ("REASSDATA", "MLD6_GROUP"),
        36: ("NETBUF",),
        40: ("NETCONN",),
        68: ("TCP_PCB_LISTEN",),
        80: ("UDP_PCB",),
        196: ("TCP_PCB",),
    },
}
"""Bytes of the elements with default options, by the protocols that are compiled in."""

_AT_LEAST = {
    "TCP_SEG": "TCP_SND_QUEUELEN",
    "SYS_TIMEOUT": "LWIP_NUM_SYS_TIMEOUT_INTERNAL",
    "IGMP_GROUP": "2",
}
"""What lwIP's own checks require of a pool (src/core/init.c) if that is more than 1."""
_AT_MOST = {"REASSDATA": "IP_REASS_MAX_PBUFS"}
"""What they accept at most."""
_OPTION = {"IP6_REASSDATA": "REASSDATA"}
_DESCRIPTOR = re.compile(r"memp_([A-Z0-9_]+)\b")
_FUNCTION = re.compile(r"\w+")


@dataclass(frozen=True)
class Pool:
    """Objects of one pool of lwIP.

    Attributes:
        name: as in MEMP_NUM_TCP_PCB: TCP_PCB.
        size: bytes of an element.
        most: how many live at once at most.
        certain: whether a call site says what they are; else their size does.
        others: pools with elements of that size, which may have some of these objects.
    """

    name: str
    size: int
    most: int
    certain: bool
    others: tuple[str, ...] = ()


def pools_of(trace: Trace) -> list[Pool]:
    """The pools that a trace has objects of; none if neither call sites nor sizes name one. O(calls) for each."""
    size, _ = sizes_of_objects(trace)
    results = []
    for name, (objects, certain, others) in _members(trace).items():
        results.append(Pool(name, int(size[objects].max()), most_at_once(trace, objects), certain, others))
    return sorted(results, key=_rank)


def _rank(pool: Pool) -> tuple[bool, bool, str]:
    return (pool.name == PBUF_POOL, not pool.certain, pool.name)


def pools_of_all(traces: Sequence[Trace]) -> list[Pool]:
    """The pools of several traces, each as large as the largest of these. O(calls) for each."""
    largest: dict[str, Pool] = {}
    for pool in (pool for trace in traces for pool in pools_of(trace)):
        known = largest.get(pool.name)
        if known is None or (pool.most, pool.size) > (known.most, known.size):
            largest[pool.name] = pool
    return sorted(largest.values(), key=_rank)


def without_pools(trace: Trace) -> Trace | None:
    """The trace without the objects of pools: what lwIP's heap has to serve; None if nothing is left."""
    pooled = np.zeros(trace.objects()[1], bool)
    for objects, _, _ in _members(trace).values():
        pooled |= objects
    return without_objects(trace, pooled)


def option_lines(pools: Sequence[Pool], count: Callable[[int], int]) -> tuple[str, ...]:
    """The lines of lwipopts.h; `count` gives the elements to make for a pool's `most`."""
    lines = []
    for pool in pools:
        number = str(count(pool.most))
        why = f"{pool.most:,} of {pool.size:,} B at once; {'certain' if pool.certain else 'guessed by size'}"
        if pool.others:
            why += f", with {', '.join(pool.others)}"
        if pool.name == PBUF_POOL:
            lines += [f"#define PBUF_POOL_SIZE {number} /* {why} */"]
            lines += [f"#define PBUF_POOL_BUFSIZE {pool.size - PBUF_BYTES} /* {pool.size:,} less struct pbuf */"]
            continue
        if (least := _AT_LEAST.get(pool.name, "1")).isdigit():
            number = str(max(int(number), int(least)))
        else:
            number = f"({number} > {least} ? {number} : {least})"
        if most := _AT_MOST.get(_OPTION.get(pool.name, pool.name)):
            number = f"({number} < {most} ? {number} : {most})"
        lines.append(f"#define MEMP_NUM_{_OPTION.get(pool.name, pool.name)} {number} /* {why} */")
    return tuple(lines)


def header(prefix: str, lines: Sequence[str], arena: int, names: Sequence[str]) -> str:
    """The text of PREFIX_lwip_pools.h.

    Args:
        prefix: of the generated heap.
        lines: the options, as `option_lines` gives them, `MEM_SIZE` in front.
        arena: bytes of the generated heap, if it serves what lwIP's heap would.
        names: of the traces.
    """
    upper = prefix.upper()
    text = "\n".join(lines)
    known = printable(", ".join(names)).replace("*/", "* /")
    return f"""/* {prefix}_lwip_pools.h: lwIP's own pools, and its heap, for {known}.
 *
 * To be included by lwipopts.h: alone, for lwIP's own heap; before {prefix}_lwip_opts.h, for the generated heap with
 * lwIP's pools. Numbers are a fifth more than lived at once in the recording. "Certain": the recording names the pool.
 * "Guessed by size": only the size of an object suggests it, as lwIP 2.1.3 and 2.2.1 have it on 32 bits; record with
 * -DAPP_TRACE_SITES=1 and import with --elf to be certain.
 */
#ifndef {upper}_LWIP_POOLS_H
#define {upper}_LWIP_POOLS_H

#define MEMP_MEM_MALLOC 0
#define {upper}_LWIP_BYTES {arena}
{text}

#endif
"""


_Members = dict[str, tuple[NDArray[np.bool_], bool, tuple[str, ...]]]


def _members(trace: Trace) -> _Members:
    """The objects of each pool (one entry an object), whether that is certain, and pools of the same size."""
    named = _by_site(trace)
    return named or _by_size(trace)


def _by_site(trace: Trace) -> _Members:
    number_of, objects = trace.objects()
    births = trace.op <= CALLOC
    site = np.zeros(objects, np.int64)
    site[number_of[births]] = trace.site[births]
    pools = [_pool_at(name) for name in trace.sites]
    results: _Members = {}
    for name in dict.fromkeys(filter(None, pools)):
        of_pool = np.isin(site, [at for at, pool in enumerate(pools) if pool == name])
        if of_pool.any():
            results[name] = (of_pool, True, ())
    if results and PBUF_POOL not in results:
        at = [number for number, name in enumerate(trace.sites) if _function(name) == "pbuf_alloc"]
        results |= _packets(trace, np.isin(site, at))
    return results


def _pool_at(site: str) -> str:
    """The pool that a call site belongs to; "" if it names none."""
    if found := _DESCRIPTOR.match(site):
        return found[1]
    return FUNCTIONS.get(_function(site), "")


def _function(site: str) -> str:
    found = _FUNCTION.match(site)
    return found[0] if found else ""


def _by_size(trace: Trace) -> _Members:
    size, resized = sizes_of_objects(trace)
    born = set(size[~resized].tolist())
    known = next((sizes for sizes in SIZES.values() if _anchors(sizes) & born), None)
    if known is None:
        return {}
    results: _Members = {}
    for bytes_, names in known.items():
        objects = (size == bytes_) & ~resized
        if objects.any():
            for name in names:
                results[name] = (objects, False, tuple(other for other in names if other != name))
    return results | _packets(trace, ~resized)


def _anchors(sizes: dict[int, tuple[str, ...]]) -> set[int]:
    """The sizes that only one protocol's control blocks have: without one of these nothing is guessed."""
    return {bytes_ for bytes_, names in sizes.items() if "TCP_PCB" in names or "TCP_PCB_LISTEN" in names}


def _packets(trace: Trace, among: NDArray[np.bool_]) -> _Members:
    """The elements of PBUF_POOL: the objects of the size that is allocated most often, of a packet's sizes."""
    size, _ = sizes_of_objects(trace)
    fitting = among & (size >= _PACKET_SIZES.start) & (size < _PACKET_SIZES.stop) & (size % 4 == 0)
    bytes_, times = np.unique(size[fitting], return_counts=True)
    if not len(times) or times.max() < _FEWEST_PACKETS:
        return {}
    return {PBUF_POOL: (fitting & (size == bytes_[times.argmax()]), False, ())}
