"""The programs of the corpus: which role each has, what it needs, and how much traffic it gets.

The role was given by name before anything was recorded or looked at. It is never changed: nothing may be tuned on
programs that judge, and no two ideas be compared there to keep one.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Program(NamedTuple):
    """One program.

    Attributes:
        role: "choose" where designs may be chosen by it, "judge" where it only judges what was chosen.
        load: the module of this folder whose `record` makes its traffic.
        programs: what must be on the path.
        packages: Debian's names of what has them.
        short: requests of the runs a and b, for 10,000 to 50,000 calls.
        long: requests of the long run, for two million calls or more.
    """

    role: Literal["choose", "judge"]
    load: str
    programs: str
    packages: str
    short: int
    long: int


PROGRAMS = {
    "mosquitto": Program("choose", "mqtt", "mosquitto", "mosquitto", 1_200, 70_000),
    "lighttpd": Program("choose", "http", "lighttpd", "lighttpd", 5_000, 400_000),
    "sqlite": Program("choose", "sql", "sqlite3", "sqlite3", 350, 25_000),
    "lua": Program("choose", "lua", "lua5.4", "lua5.4", 1_600, 120_000),
    "unbound": Program("choose", "dns", "unbound", "unbound", 600, 105_000),
    "stunnel": Program("choose", "tls", "stunnel4 openssl", "stunnel4 openssl", 10, 1_400),
    "tinyproxy": Program("choose", "proxy", "tinyproxy", "tinyproxy-bin", 80, 9_000),
    "redis": Program("judge", "keyvalue", "redis-server", "redis-server", 1_000, 100_000),
    "nginx": Program("judge", "http", "nginx", "nginx-light", 5_000, 330_000),
    "coap": Program("judge", "coap", "coap-server-notls", "libcoap3-bin", 2_500, 160_000),
    "snmpd": Program("judge", "snmp", "snmpd", "snmpd", 80, 20_000),
    "mruby": Program("judge", "mruby", "mruby", "mruby", 3_000, 220_000),
    "inspircd": Program("judge", "irc", "inspircd", "inspircd", 450, 60_000),
    "board": Program(
        "judge",
        "board",
        "arm-none-eabi-gcc qemu-system-arm",
        "gcc-arm-none-eabi picolibc-arm-none-eabi qemu-system-arm",
        500,
        27_000,
    ),
}
