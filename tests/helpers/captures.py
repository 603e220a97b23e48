"""Packets, frames and files of them, made by hand for the tests of the importers."""

from __future__ import annotations

import struct

import dpkt

CLIENT, SERVER, ACCESS_POINT = b"\x02\0\0\0\0\x01", b"\x02\0\0\0\0\x02", b"\x02\0\0\0\0\x03"
SNAP_IP = b"\xaa\xaa\x03\0\0\0\x08\x00"
ETHERNET_IP = SERVER + CLIENT + b"\x08\x00"


def tcp_packet(payload: int, back: bool = False, client_port: int = 40000) -> bytes:
    """An IPv4 packet of 20 + 20 + payload bytes between 192.0.2.1 and 192.0.2.2:80."""
    ends = [(b"\xc0\x00\x02\x01", client_port), (b"\xc0\x00\x02\x02", 80)]
    (source, source_port), (destination, port) = reversed(ends) if back else ends
    segment = dpkt.tcp.TCP(sport=source_port, dport=port, data=b"x" * payload)
    packet = dpkt.ip.IP(src=source, dst=destination, p=dpkt.ip.IP_PROTO_TCP, data=segment)
    packet.len = len(packet)
    return bytes(packet)


def tcp_frame(payload: int, back: bool = False, client_port: int = 40000) -> bytes:
    """The same packet in an Ethernet frame: 14 bytes more."""
    macs = (SERVER, CLIENT) if back else (CLIENT, SERVER)
    packet = dpkt.ip.IP(tcp_packet(payload, back, client_port))
    return bytes(dpkt.ethernet.Ethernet(src=macs[0], dst=macs[1], data=packet))


def udp6_packet(payload: int) -> bytes:
    datagram = dpkt.udp.UDP(sport=5683, dport=5683, data=b"y" * payload)
    datagram.ulen = len(datagram)
    ends = {"src": b"\x20" + b"\0" * 15, "dst": b"\x20" + b"\1" * 15}
    return bytes(dpkt.ip6.IP6(**ends, nxt=17, hlim=1, data=datagram, plen=len(datagram)))


def wifi_data(flags: int, body: bytes, qos: bool = False, fourth: bytes = b"") -> bytes:
    """An 802.11 data frame with addresses 1 to 3 = SERVER, CLIENT, ACCESS_POINT."""
    control = bytes([0x88 if qos else 0x08, flags])
    header = control + b"\0\0" + SERVER + CLIENT + ACCESS_POINT + b"\0\0" + fourth
    return header + (b"\0\0" if qos else b"") + body


def radiotap(frame: bytes) -> bytes:
    return struct.pack("<BBHI", 0, 0, 12, 1 << 5) + b"\xc0\0\0\0" + frame


PACKET = tcp_packet(100)
WIFI = wifi_data(1, SNAP_IP + PACKET)
SENSOR = struct.pack("<HBHHH", 0x8841, 7, 0xABCD, 2, 1)
"""The header of an 802.15.4 data frame."""
FRAMES = [tcp_frame(0), tcp_frame(0, back=True), tcp_frame(1000, back=True), tcp_frame(7, client_port=40001)]


def pcap(
    frames: list[bytes], order: str = "<", magic: int = 0xA1B2C3D4, link: int = 1, snap: int = 65535, unit: int = 1000
) -> bytes:
    """A pcap file with a frame every 1500 microseconds, as 1500 * unit fractions of a second / (1e6 * unit)."""
    parts = [struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, snap, link)]
    for number, frame in enumerate(frames):
        data = frame[:snap]
        parts.append(struct.pack(order + "IIII", 1_700_000_000, number * 1500 * unit // 1000, len(data), len(frame)))
        parts.append(data)
    return b"".join(parts)


def block(order: str, kind: int, body: bytes) -> bytes:
    """A pcapng block: type, length, body padded to 4 bytes, length again."""
    body += b"\0" * (-len(body) % 4)
    return struct.pack(order + "II", kind, len(body) + 12) + body + struct.pack(order + "I", len(body) + 12)


def pcapng(frames: list[bytes], order: str = "<", resolution: int = 6, links: tuple[int, ...] = (1,)) -> bytes:
    """A pcapng file with one interface a link type, frames dealt to them in turn, one every 1500 microseconds."""
    parts = [block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for link in links:
        option = struct.pack(order + "HHB3xHH", 9, 1, resolution, 0, 0)
        parts.append(block(order, 1, struct.pack(order + "HHI", link, 0, 65535) + option))
    ticks_a_second = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    for number, frame in enumerate(frames):
        ticks = 1_700_000_000 * ticks_a_second + number * 1500 * ticks_a_second // 1_000_000
        head = (number % len(links), ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
        parts.append(block(order, 6, struct.pack(order + "IIIII", *head) + frame))
        parts.append(block(order, 0x0BAD, b"a block of another kind"))
    return b"".join(parts)


def tsh_record(microseconds: int, packet: bytes) -> bytes:
    """A time-sequenced header: interface 3, one billion seconds and `microseconds` since the epoch."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return struct.pack(">II", 1_000_000_000 + seconds, 3 << 24 | rest) + packet[:36].ljust(36, b"\0")
