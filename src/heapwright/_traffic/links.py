"""Link layers: from the bytes of a captured frame to its length on the link, its IP packet and its two ends.

Link types are numbered as in the registry of tcpdump.org/linktypes.html. dpkt dissects what it knows (Ethernet with its
tags, Linux cooked, loopback, IP); the headers of 802.11 and 802.15.4 are followed here just far enough to find both
addresses and the payload.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpkt import pcap
from dpkt.dpkt import Packet
from dpkt.ethernet import Ethernet
from dpkt.ip import IP, IP_PROTO_ESP
from dpkt.ip6 import IP6
from dpkt.loopback import Loopback
from dpkt.sll import SLL
from dpkt.sll2 import SLL2

from heapwright._traffic.rows import Flows

NAMES = {
    0: "BSD loopback",
    1: "Ethernet",
    12: "raw IP",
    14: "raw IP",
    101: "raw IP",
    105: "802.11",
    108: "OpenBSD loopback",
    113: "Linux cooked",
    119: "802.11 with prism header",
    127: "802.11 with radiotap header",
    163: "802.11 with AVS header",
    192: "PPI",
    195: "802.15.4",
    228: "raw IPv4",
    229: "raw IPv6",
    230: "802.15.4 without FCS",
    276: "Linux cooked v2",
    283: "802.15.4 TAP",
}
"""The link types that are read, by number."""


def unsupported(link_type: int) -> str:
    """Name a link type that is not read, and what would be."""
    names = [key[4:] for key, value in vars(pcap).items() if key.startswith("DLT_") and value == link_type]
    known = f" ({names[0]})" if names else ""
    valid = ", ".join(f"{name} ({number})" for number, name in NAMES.items() if number not in (12, 14))
    return f"link type {link_type}{known} is not supported; valid: {valid}"


def dissect(link_type: int, data: bytes, wire_len: int, flows: Flows) -> tuple[int, int, int, int, int]:
    """Return (frame_len, ip_len, proto, flow, dir) of one frame of a supported link type.

    Args:
        link_type: a key of NAMES.
        data: the bytes captured.
        wire_len: bytes before the capture cut the frame, pseudo headers of the capturing program included.
        flows: numbers the flows of this capture.

    Radiotap, prism, AVS, PPI and TAP headers were never sent: frame_len leaves them out. Linux cooked and loopback
    headers replace the real ones and count. A frame that cannot be dissected counts with its length alone.
    """
    pseudo = 0
    try:
        if link_type in _PSEUDO:
            pseudo, link_type = _PSEUDO[link_type](data)
        frame = _LINKS.get(link_type, _opaque)(data[pseudo:])
    except Exception:
        # Dissectors get any bytes that a network carried, and fail in many ways. The frame itself still counts.
        frame = _Frame()
    frame_len = max(wire_len - pseudo, 0)
    if frame.network is not None:
        return frame_len, *_of_packet(frame.network, frame_len - frame.header, flows)
    if frame.ends is not None:
        return frame_len, 0, 0, *flows.of(0, *frame.ends)
    return frame_len, 0, 0, 0, 0


def _of_packet(network: IP | IP6, room: int, flows: Flows) -> tuple[int, int, int, int]:
    """(ip_len, proto, flow, dir) of an IP packet that had `room` bytes in its frame."""
    header = 0 if isinstance(network, IP) else network.__hdr_len__
    stated = network.len if isinstance(network, IP) else network.plen
    # Segmentation offload: the sender's stack left the length to the network card.
    ip_len = stated + header if stated else max(room, 0)
    ends = (
        address + int(getattr(network.data, port, 0)).to_bytes(2, "big")
        for address, port in ((network.src, "sport"), (network.dst, "dport"))
    )
    # dpkt names no protocol where ESP hides it.
    proto = getattr(network, "p", IP_PROTO_ESP)
    return ip_len, proto, *flows.of(proto, *ends)


# --- link headers ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Frame:
    """The content of a link header: its length, the addresses of sender and receiver, and the IP packet behind it."""

    header: int = 0
    ends: tuple[bytes, bytes] | None = None
    network: IP | IP6 | None = None


def _ip_in(layer: Packet | bytes) -> IP | IP6 | None:
    while isinstance(layer, Packet) and not isinstance(layer, (IP, IP6)):
        layer = layer.data
    return layer if isinstance(layer, (IP, IP6)) else None


def _ip_of_type(ethertype: bytes, payload: bytes) -> IP | IP6 | None:
    """The IP packet behind an EtherType, through tags and tunnels as in an Ethernet frame; None if it breaks off."""
    try:
        return _ip_in(Ethernet(bytes(12) + ethertype + payload))
    except Exception:
        return None


def _opaque(data: bytes) -> _Frame:
    return _Frame()


def _ethernet(data: bytes) -> _Frame:
    frame = Ethernet(data)
    header = frame.__hdr_len__ + 4 * len(getattr(frame, "vlan_tags", ()))
    return _Frame(header, (frame.src, frame.dst), _ip_in(frame))


def _cooked(data: bytes) -> _Frame:
    return _Frame(SLL.__hdr_len__, None, _ip_in(SLL(data)))


def _cooked2(data: bytes) -> _Frame:
    return _Frame(SLL2.__hdr_len__, None, _ip_in(SLL2(data)))


def _loopback(data: bytes) -> _Frame:
    return _Frame(Loopback.__hdr_len__, None, _ip_in(Loopback(data)))


def _raw_ip(data: bytes) -> _Frame:
    return _Frame(0, None, IP6(data) if data[0] >> 4 == 6 else IP(data))


_SNAP = b"\xaa\xaa\x03"
_MANAGEMENT, _CONTROL, _DATA = range(3)


def _wifi(data: bytes) -> _Frame:
    """IEEE 802.11-2016, 9.2: frame control, duration, one to four addresses, then the body."""
    kind, subtype, flags = data[0] >> 2 & 3, data[0] >> 4, data[1]
    first, second, third = data[4:10], data[10:16], data[16:22]
    if kind not in (_MANAGEMENT, _CONTROL, _DATA) or len(second) < 6:
        return _Frame()  # acknowledgements name only the receiver
    if kind != _DATA:
        return _Frame(ends=(second, first))
    to_access_point, from_access_point = flags & 1, flags & 2
    header = 24
    source, destination = second, third if to_access_point else first
    if from_access_point:
        source = data[24:30] if to_access_point else third
        header += 6 if to_access_point else 0
    if subtype & 8:
        header += 6 if flags & 0x80 else 2  # QoS control, then HT control
    return _Frame(header + 8, (source, destination), None if flags & 0x40 else _wifi_body(data, header))


def _wifi_body(data: bytes, header: int) -> IP | IP6 | None:
    padded = -(-header // 4) * 4  # some cards pad the header
    at = header if data[header : header + 3] == _SNAP else padded
    body = data[at:]
    return _ip_of_type(body[6:8], body[8:]) if body[:3] == _SNAP else None


_UNCOMPRESSED_IPV6 = 0x41


def _sensor(data: bytes) -> _Frame:
    """IEEE 802.15.4-2006, 7.2: frame control, sequence number, addresses with their networks, then the payload.

    IPv6 is found where it is sent whole (RFC 4944, dispatch 0x41); compressed headers (RFC 6282) count as no IP.
    """
    control = int.from_bytes(data[:2], "little")
    version, secured, one_network = control >> 12 & 3, control & 8, control & 0x40
    if version > 1:
        return _Frame()
    at = 3
    destination, at = _sensor_address(data, at, control >> 10 & 3, network=True)
    source, at = _sensor_address(data, at, control >> 14 & 3, network=not one_network)
    network = IP6(data[at + 1 :]) if not secured and data[at : at + 1] == bytes([_UNCOMPRESSED_IPV6]) else None
    return _Frame(at + 1, (source, destination) if source and destination else None, network)


def _sensor_address(data: bytes, at: int, mode: int, network: bool) -> tuple[bytes, int]:
    """The address of mode 2 (2 bytes) or 3 (8 bytes) at an offset, behind its network's number, and where it ends."""
    if mode < 2:
        return b"", at
    start = at + 2 if network else at
    end = start + (2 if mode == 2 else 8)
    return data[start:end] if end <= len(data) else b"", end


# --- what capturing programs put in front ----------------------------------------------------------------------------

_AVS_MAGIC = 0x80211000


def _radiotap(data: bytes) -> tuple[int, int]:
    return int.from_bytes(data[2:4], "little"), 105


def _prism(data: bytes) -> tuple[int, int]:
    """The wlan-ng header of 144 bytes; programs also write AVS headers under its number."""
    if int.from_bytes(data[:4], "big") & 0xFFFFF000 == _AVS_MAGIC:
        return _avs(data)
    return 144, 105


def _avs(data: bytes) -> tuple[int, int]:
    return int.from_bytes(data[4:8], "big"), 105


def _ppi(data: bytes) -> tuple[int, int]:
    return int.from_bytes(data[2:4], "little"), int.from_bytes(data[4:8], "little")


def _tap(data: bytes) -> tuple[int, int]:
    return int.from_bytes(data[2:4], "little"), 195


_PSEUDO: dict[int, Callable[[bytes], tuple[int, int]]] = {
    119: _prism,
    127: _radiotap,
    163: _avs,
    192: _ppi,
    283: _tap,
}
_LINKS: dict[int, Callable[[bytes], _Frame]] = {
    0: _loopback,
    1: _ethernet,
    12: _raw_ip,
    14: _raw_ip,
    101: _raw_ip,
    105: _wifi,
    108: _loopback,
    113: _cooked,
    195: _sensor,
    228: _raw_ip,
    229: _raw_ip,
    230: _sensor,
    276: _cooked2,
}
