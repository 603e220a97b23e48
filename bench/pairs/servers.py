"""Servers and their clients: each function records one program under the load that its parameters say."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from pairs.running import EXAMPLES, Run, lighttpd_config

INTERRUPT = signal.SIGINT


def lighttpd(run: Run, visitors: int, requests: int) -> None:
    site = run.folder / "site"
    run.run(sys.executable, EXAMPLES / "http_load.py", "--root", site, "--make", "--seed", str(run.seed))
    config = run.file("lighttpd.conf", lighttpd_config(site, run.port, run.folder))
    with run.serve("lighttpd", "-D", "-f", config):
        run.visit(site, visitors, requests)


def tinyproxy(run: Run, visitors: int, requests: int) -> None:
    config = run.file(
        "tinyproxy.conf",
        f"""
Port {run.port}
Listen 127.0.0.1
Timeout 30
MaxClients 100
LogFile "{run.folder}/log"
ViaProxyName "gateway"
AddHeader "X-Device" "gateway-1"
ReversePath "/" "http://127.0.0.1:{run.other_port}/"
ReverseOnly Yes
""",
    )
    with run.web_site(run.other_port) as site, run.serve("tinyproxy", "-d", "-c", config):
        run.visit(site, visitors, requests)


def mosquitto(run: Run, seconds: float, messages: int, sensors: int, subscribers: int) -> None:
    config = run.file(
        "mosquitto.conf",
        f"""
listener {run.port} 127.0.0.1
allow_anonymous true
persistence false
max_queued_messages 20
sys_interval 0
log_dest none
user {getpass.getuser()}
""",
    )
    # For its first client the broker has OpenSSL fill its tables, even without encryption: that is its start.
    first = ("mosquitto_pub", "-h", "127.0.0.1", "-p", str(run.port), "-t", "start", "-n")
    with run.serve("mosquitto", "-c", config, first=first):
        load = [sys.executable, str(EXAMPLES / "mqtt_load.py"), "--port", str(run.port), "--seed", str(run.seed)]
        counts = ["--messages", str(messages), "--sensors", str(sensors), "--subscribers", str(subscribers)]
        run.run(*load, *counts, "--seconds", str(seconds))


def question(number: int, name: str, kind: int) -> bytes:
    """A DNS query."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"
    return struct.pack(">6H", number, 0x0100, 1, 0, 0, 0) + labels + struct.pack(">2H", kind, 1)


def ask(run: Run, names: list[str], kinds: list[int], count: int) -> None:
    """Ask `count` questions, some of them over TCP."""
    with socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.settimeout(0.5)
        for number in range(count):
            message = question(number, run.draw.choice(names), run.draw.choice(kinds))
            if run.draw.random() < 0.1:
                with socket.create_connection(("127.0.0.1", run.port), 5) as tcp:
                    tcp.sendall(struct.pack(">H", len(message)) + message)
                    tcp.recv(4096)
                continue
            udp.sendto(message, ("127.0.0.1", run.port))
            try:
                udp.recv(4096)
            except TimeoutError:
                continue


def answer(upstream: socket.socket) -> None:
    """Be a name server that knows an address for every name, until the socket is closed."""
    while True:
        try:
            message, client = upstream.recvfrom(4096)
        except OSError:
            return
        end = message.index(b"\0", 12) + 5
        record = b"\xc0\x0c" + struct.pack(">2HIH4B", 1, 1, 60, 4, 192, 0, 2, message[1] % 250 + 1)
        reply = message[:2] + struct.pack(">5H", 0x8180, 1, 1, 0, 0) + message[12:end] + record
        upstream.sendto(reply, client)


def dnsmasq(run: Run, hosts: int, questions: int) -> None:
    names = [f"{word}.lan" for word in run.words(hosts)]
    lines = [f"10.0.{number // 250}.{number % 250 + 1} {name}\n" for number, name in enumerate(names)]
    table = run.file("hosts", "".join(lines))
    outside = [f"www.{word}.example" for word in run.words(hosts)]
    with socket.socket(type=socket.SOCK_DGRAM) as upstream:
        upstream.bind(("127.0.0.1", run.other_port))
        threading.Thread(target=answer, args=(upstream,), daemon=True).start()
        options = ["-C", "/dev/null", "-h", "-R", "-p", str(run.port), "-a", "127.0.0.1", "-z", "-x", "", "-d"]
        forward = ["-S", f"127.0.0.1#{run.other_port}", "-H", str(table), "-c", "150", "-u", getpass.getuser()]
        with run.serve("dnsmasq", *options, *forward) as server:
            for _ in range(3):
                ask(run, names + outside, [1, 1, 1, 28], questions // 3)
                table.write_text("".join(run.draw.sample(lines, hosts * 3 // 4)))
                os.kill(server, signal.SIGHUP)


def zone(run: Run, names: list[str], serial: int) -> str:
    """A zone with the addresses of names, and other records of some."""
    lines = [f"$ORIGIN example.\n$TTL 300\n@ SOA ns hostmaster {serial} 3600 600 86400 300\n@ NS ns\nns A 192.0.2.1\n"]
    for number, name in enumerate(names):
        lines.append(f"{name} A 10.0.{number // 250}.{number % 250 + 1}\n")
        if number % 4 == 0:
            lines.append(f'{name} TXT "{" ".join(run.words(run.draw.randint(1, 9)))}"\n')
        if number % 9 == 0:
            lines.append(f"_srv._tcp.{name} SRV 10 5 {8000 + number} ns\n")
    return "".join(lines)


def knot(run: Run, hosts: int, questions: int) -> None:
    names = [f"{word}-{number}" for number, word in enumerate(run.words(hosts))]
    run.file("example.zone", zone(run, names, 1))
    config = run.file(
        "knot.conf",
        f"""
server:
    rundir: {run.folder}
    listen: 127.0.0.1@{run.port}
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
database:
    storage: {run.folder}/db
zone:
  - domain: example
    storage: {run.folder}
    file: example.zone
    zonefile-sync: -1
    journal-content: none
""",
    )
    requested = [*(f"{name}.example" for name in names), "missing.example", "example"]
    with run.serve("knotd", "-c", config) as server:
        for serial in range(2, 5):
            ask(run, requested, [1, 1, 16, 28, 255], questions // 3)
            run.file("example.zone", zone(run, run.draw.sample(names, hosts * 3 // 4), serial))
            os.kill(server, signal.SIGHUP)
            time.sleep(0.5)


def coturn(run: Run, clients: int, messages: int) -> None:
    options = ["-n", "--no-tls", "--no-dtls", "--no-cli", "-m", "1", "-L", "127.0.0.1", "-p", str(run.port)]
    account = ["-a", "-u", "user:secret", "-r", "example", "--allow-loopback-peers", "-b", str(run.folder / "users")]
    with run.serve("turnserver", *options, *account, "-l", "stdout", "--pidfile", str(run.folder / "pid")):
        client = ["turnutils_uclient", "-y", "-u", "user", "-w", "secret", "-p", str(run.port), "127.0.0.1"]
        run.run(*client, "-m", str(clients), "-n", str(messages), "-l", "170", seconds=60)
        run.run(*client, "-t", "-m", str(clients // 2), "-n", str(messages), "-l", "900", seconds=60)


def iperf3(run: Run, streams: int, seconds: int) -> None:
    with run.serve("iperf3", "-s", "-J", "-i", "0.1", "-B", "127.0.0.1", "-p", str(run.port), end=INTERRUPT):
        client = ["iperf3", "-c", "127.0.0.1", "-p", str(run.port), "-t", str(seconds), "-i", "0.1", "-b", "20M"]
        run.run(*client, "-P", str(streams))
        run.run(*client, "-P", str(streams), "-R")
        run.run(*client, "-u", "-l", "512")


def rsyslog(run: Run, senders: int, messages: int) -> None:
    config = run.file(
        "rsyslog.conf",
        f"""
module(load="imudp")
module(load="imtcp")
input(type="imudp" address="127.0.0.1" port="{run.port}")
input(type="imtcp" address="127.0.0.1" port="{run.other_port}")
template(name="line" type="list") {{
    property(name="timereported" dateFormat="rfc3339") constant(value=" ")
    property(name="hostname") constant(value=" ") property(name="syslogtag") property(name="msg") constant(value="\\n")
}}
if $msg contains "error" then action(type="omfile" file="{run.folder}/errors" template="line")
*.* action(type="omfile" file="{run.folder}/all" template="line")
""",
    )
    server = run.serve("rsyslogd", "-n", "-f", config, "-i", str(run.folder / "pid"))
    with server, socket.socket(type=socket.SOCK_DGRAM) as udp:
        connections = [socket.create_connection(("127.0.0.1", run.other_port)) for _ in range(senders)]
        for number in range(messages):
            at = f"Nov  3 10:{number // 60 % 60:02}:{number % 60:02}"
            text = " ".join(run.words(min(60, int(run.draw.expovariate(0.1)) + 1)))
            tag = f"{run.words(1)[0]}[{number}]: {run.draw.choice(('error', 'note', 'state'))}"
            line = f"<{run.draw.randrange(192)}>{at} node{number % senders} {tag} {text}"
            if number % 3:
                udp.sendto(line.encode(), ("127.0.0.1", run.port))
            else:
                connections[number % senders].sendall(line.encode() + b"\n")
            time.sleep(run.draw.expovariate(1000))
        for connection in connections:
            connection.close()


def freeradius(run: Run, users: int, requests: int) -> None:
    names = [f"{word}{number}" for number, word in enumerate(run.words(users))]
    reply = 'Reply-Message = "Welcome, %{User-Name}",\n    Session-Timeout = 3600'
    accounts = [
        f'{name} Cleartext-Password := "{name}"\n    {reply},\n    Framed-IP-Address = 10.0.0.{number % 250 + 1}\n'
        for number, name in enumerate(names)
    ]
    run.file("users", "".join(accounts))
    run.file(
        "radiusd.conf",
        f"""
prefix = {run.folder}
localstatedir = {run.folder}
name = radiusd
logdir = {run.folder}
run_dir = {run.folder}
libdir = /usr/lib/freeradius
pidfile = {run.folder}/pid
max_request_time = 30
cleanup_delay = 1
max_requests = 1024
log {{
    destination = files
    file = {run.folder}/log
}}
thread pool {{
    start_servers = 1
    max_servers = 1
    min_spare_servers = 0
    max_spare_servers = 1
}}
client local {{
    ipaddr = 127.0.0.1
    secret = testing123
}}
modules {{
    pap {{ }}
    files {{
        filename = {run.folder}/users
    }}
}}
server default {{
    listen {{
        type = auth
        ipaddr = 127.0.0.1
        port = {run.port}
    }}
    authorize {{
        files
        pap
    }}
    authenticate {{
        pap
    }}
}}
""",
    )
    requested: list[str] = []
    for _ in range(requests):
        name = run.draw.choice(names)
        password = name if run.draw.random() < 0.9 else "wrong"
        station = ":".join(f"{run.draw.randrange(256):02x}" for _ in range(6))
        requested.append(
            f'User-Name="{name}"\nUser-Password="{password}"\nCalling-Station-Id="{station}"\nNAS-Port={len(requested)}\n'
        )
    packets = run.file("packets", "\n".join(requested))
    with run.serve("freeradius", "-f", "-d", run.folder):
        client = ["radclient", "-q", "-p", "8", "-f", str(packets), f"127.0.0.1:{run.port}", "auth", "testing123"]
        run.run(*client, check=False)


def coap(run: Run, clients: int, requests: int) -> None:
    with run.serve("coap-server-notls", "-A", "127.0.0.1", "-p", str(run.port), "-d", str(clients), end=INTERRUPT):
        address = f"coap://127.0.0.1:{run.port}"
        client = ["coap-client-notls", "-B", "2"]
        watchers = [
            subprocess.Popen(
                [*client[:1], "-s", str(2 + n % 3), "-B", "5", f"{address}/time"], stdout=subprocess.DEVNULL
            )
            for n in range(clients)
        ]
        names = run.words(clients)
        for number in range(requests):
            path = f"{address}/{names[number % clients]}"
            if run.draw.random() < 0.4:
                text = " ".join(run.words(run.draw.choice((2, 5, 20, 300))))
                run.run(*client, "-m", "put", "-e", text, path, check=False)
            elif run.draw.random() < 0.1:
                run.run(*client, "-m", "delete", path, check=False)
            else:
                run.run(*client, run.draw.choice((path, path, f"{address}/.well-known/core", address)), check=False)
        for watcher in watchers:
            watcher.wait(20)


def redis(run: Run, clients: int, requests: int) -> None:
    options = ["--port", str(run.port), "--bind", "127.0.0.1", "--hz", "1", "--save", "", "--dir", str(run.folder)]
    with run.serve("redis-server", *options, first=("redis-cli", "-p", str(run.port), "ping")):
        load = ["redis-benchmark", "-q", "-p", str(run.port), "-c", str(clients), "-n", str(requests)]
        for size in (20, 150, 900):
            keys = str(requests // 4)
            run.run(*load, "-r", keys, "-d", str(size), "-t", "set,get,lpush,lpop,sadd,hset,zadd")
            run.run(*load, "-r", keys, "set", "visitor:__rand_int__", "x" * size * 2, "ex", "1")
            run.run(*load, "-r", keys, "del", "key:__rand_int__")


def nginx(run: Run, visitors: int, requests: int) -> None:
    config = run.file(
        "nginx.conf",
        f"""
daemon off;
master_process off;
pid {run.folder}/pid;
error_log {run.folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log {run.folder}/access-nginx.log;
    client_body_temp_path {run.folder}/body;
    proxy_temp_path {run.folder}/proxy;
    server {{
        listen 127.0.0.1:{run.port};
        root {run.folder}/site;
        gzip on;
        gzip_types text/plain;
        location /pages/ {{ autoindex on; }}
        location /images/ {{ proxy_pass http://127.0.0.1:{run.other_port}; }}
    }}
}}
""",
    )
    with run.web_site(run.other_port) as site, run.serve("nginx", "-c", config, "-p", run.folder):
        run.visit(site, visitors, requests)


def monit(run: Run, checks: int, visits: int) -> None:
    lines = [
        f"set daemon 1\nset pidfile {run.folder}/pid\nset idfile {run.folder}/id\nset statefile {run.folder}/state\n"
        f"set log {run.folder}/log\nset httpd port {run.port} and use address 127.0.0.1 allow localhost\n"
        "    allow admin:device\n"
    ]
    names = [f"{word}{number}" for number, word in enumerate(run.words(checks))]
    for name in names:
        path = run.file(f"watched/{name}", " ".join(run.words(50)))
        lines.append(f'check file {name} with path {path}\n    if size > 1 KB then exec "/bin/true"\n')
        lines.append("    if changed checksum then alert\n")
    config = run.file("monitrc", "".join(lines))
    config.chmod(0o600)
    with run.serve("monit", "-I", "-c", config):
        for _ in range(visits):
            page = run.draw.choice(("", "_status?format=xml", "_status", *names))
            run.run("curl", "-s", "-u", "admin:device", f"http://127.0.0.1:{run.port}/{page}")
            (run.folder / "watched" / run.draw.choice(names)).write_text(" ".join(run.words(50)))


def collectd(run: Run, metrics: int, reports: int) -> None:
    config = run.file(
        "collectd.conf",
        f"""
Hostname "node"
BaseDir "{run.folder}"
PIDFile "{run.folder}/pid"
Interval 1
ReadThreads 1
WriteThreads 1
LoadPlugin statsd
LoadPlugin csv
LoadPlugin memory
LoadPlugin load
LoadPlugin interface
<Plugin statsd>
    Host "127.0.0.1"
    Port "{run.port}"
    DeleteGauges true
    DeleteCounters true
    TimerPercentile 90.0
</Plugin>
<Plugin csv>
    DataDir "{run.folder}/csv"
</Plugin>
""",
    )
    names = [".".join(pair) for pair in zip(run.words(metrics), run.words(metrics), strict=True)]
    with run.serve("collectd", "-f", "-C", config), socket.socket(type=socket.SOCK_DGRAM) as udp:
        for _ in range(reports):
            kind = run.draw.choice(("c", "g", "ms", "ms", "s"))
            text = "\n".join(f"{name}.{kind}:{run.draw.randrange(500)}|{kind}" for name in run.draw.sample(names, 3))
            udp.sendto(text.encode(), ("127.0.0.1", run.port))
            time.sleep(run.draw.expovariate(200))
