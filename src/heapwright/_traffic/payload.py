"""How much data packets carry behind the headers of IP and of their transport."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heapwright._traffic.packets import PacketTable

TCP, UDP = 6, 17
IP_HEADER, UDP_HEADER, TCP_HEADER, STAMPS = 20, 8, 20, 12
"""Bytes of headers without options, and of TCP's time stamps with their padding (RFC 7323)."""


def payload(packets: PacketTable) -> NDArray[np.int64]:
    """Bytes of data in each packet; 0 where it carries no IP.

    A packet table does not hold the length of headers. Time stamps are taken to be in all packets of a TCP connection
    that go one way, if more of those have the length of an acknowledgement with them (52 bytes) than that of one
    without (40). Other options are counted as data, and so is what follows the header of IPv4 in other protocols.
    """
    tcp = packets.proto == TCP
    bare = IP_HEADER + TCP_HEADER
    _, way = np.unique(packets.flow.astype(np.int64) * 2 + packets.dir, return_inverse=True)
    short, long = (np.bincount(way, tcp & (packets.ip_len == size)) for size in (bare, bare + STAMPS))
    headers = np.where(tcp, bare + np.where(long > short, STAMPS, 0)[way], IP_HEADER)
    headers = headers + np.where(packets.proto == UDP, UDP_HEADER, 0)
    return np.maximum(packets.ip_len.astype(np.int64) - headers, 0)


def most_payload(packets: PacketTable) -> int:
    """Bytes of data of the largest packet that may come: as in these, without time stamps in any; the frame without IP.

    With an MTU in the metadata also a packet of the MTU without a transport.
    """
    carried = packets.ip_len > 0
    headers = np.where(packets.proto == TCP, IP_HEADER + TCP_HEADER, IP_HEADER)
    headers = headers + np.where(packets.proto == UDP, UDP_HEADER, 0)
    data = np.where(carried, packets.ip_len.astype(np.int64) - headers, packets.frame_len)
    return max(int(data.max(initial=0)), int(packets.metadata.get("mtu", 0)) - IP_HEADER)
