"""Programs that end by themselves: each function records one on the input that its parameters say."""

from __future__ import annotations

import struct
import subprocess

from pairs.running import Run


def lua(run: Run, sensors: int, readings: int) -> None:
    run.record("lua5.4", run.program("gateway.lua"), str(sensors), str(readings))


def mruby(run: Run, rooms: int, events: int) -> None:
    run.record("mruby", run.program("rules.rb"), str(rooms), str(events))


def jimsh(run: Run, devices: int, settings: int) -> None:
    lines = []
    for number in range(devices):
        lines.append(f"device {run.words(1)[0]}-{number}\n")
        for key in run.words(run.draw.randint(1, settings)):
            lines.append(f"    {key} = {' '.join(run.words(run.draw.randint(1, 8)))}\n")
    run.record("jimsh", run.program("config.tcl"), run.file("devices.conf", "".join(lines)))


def gawk(run: Run, visitors: int, visits: int) -> None:
    paths = ["/" + "/".join(run.words(run.draw.randint(1, 3))) for _ in range(visitors * 2)]
    lines = []
    for number in range(visits):
        clock = f"{number // 240 % 24:02}:{number // 4 % 60:02}:{number % 60:02}"
        path = paths[min(run.draw.randrange(len(paths)), run.draw.randrange(len(paths)))]
        line = f"10.0.0.{run.draw.randrange(visitors)} - - [03/Nov/2025:{clock} +0000] "
        query = f"?q={run.words(1)[0]}" if run.draw.random() < 0.3 else ""
        code = run.draw.choice((200, 200, 200, 304, 404))
        lines.append(f'{line}"GET {path}{query} HTTP/1.1" {code} {run.draw.randrange(9000)}\n')
    run.record("gawk", "-f", run.program("visits.awk"), run.file("access.log", "".join(lines)))


def sqlite(run: Run, sensors: int, readings: int) -> None:
    queries = [
        "PRAGMA synchronous = off;",
        "CREATE TABLE sensor(id INTEGER PRIMARY KEY, name TEXT UNIQUE, place TEXT);",
        "CREATE TABLE reading(sensor INTEGER REFERENCES sensor, at INTEGER, value REAL, note TEXT);",
        "CREATE INDEX by_sensor ON reading(sensor, at);",
    ]
    for number, name in enumerate(run.words(sensors)):
        queries.append(f"INSERT INTO sensor VALUES({number}, '{name}-{number}', '{run.words(1)[0]}');")
    for number in range(readings):
        note = " ".join(run.words(run.draw.randint(0, 60)))
        value = run.draw.randrange(1000) / 10
        queries.append(f"INSERT INTO reading VALUES({run.draw.randrange(sensors)}, {number}, {value}, '{note}');")
        if number % 40 == 39:
            queries.append("SELECT name, count(*), avg(value) FROM reading JOIN sensor ON id = sensor GROUP BY name;")
        if number % 60 == 59:
            queries.append(f"DELETE FROM reading WHERE at < {number - readings // 2};")
        if number % 25 == 24:
            queries.append(
                f"SELECT at, value FROM reading WHERE sensor = {number % sensors} ORDER BY value DESC LIMIT 9;"
            )
    run.record("sqlite3", run.folder / "readings.db", text="\n".join(queries))


def element(run: Run, depth: int, children: int) -> str:
    """An XML element with attributes, text and others in it."""
    name, *keys = run.words(run.draw.randint(1, 4), 9)
    attributes = "".join(f' {key}{at}="{run.words(1)[0]}"' for at, key in enumerate(keys))
    below = run.draw.randint(children // 2, children) if depth else 0
    inside = "".join(element(run, depth - 1, children) for _ in range(below))
    return f"<{name}{attributes}>{' '.join(run.words(run.draw.randint(0, 9)))}{inside}</{name}>\n"


def xmllint(run: Run, depth: int, children: int) -> None:
    document = run.file("document.xml", f"<feed>{element(run, depth, children)}</feed>")
    run.record("xmllint", "--format", "--xpath", "//*[@*]/..", document)


def make(run: Run, modules: int) -> None:
    names = [f"{word}{number}" for number, word in enumerate(run.words(modules))]
    headers = run.words(modules)
    lines = [f"objects = {' '.join(f'{name}.o' for name in names)}\nall: image\nimage: $(objects)\n\techo $^ > $@\n"]
    lines.append("%.o: %.c\n\techo $(CFLAGS) $(patsubst %.c,%.i,$<) > $@\n")
    for name in names:
        used = " ".join(f"{header}.h" for header in run.draw.sample(headers, run.draw.randint(0, min(8, modules))))
        lines.append(f"{name}.o: CFLAGS = -O2 -D{name.upper()} $(filter %.o,$(objects:.o=.d))\n{name}.o: {used}\n")
    for name in names:
        run.file(f"{name}.c", "")
    for header in headers:
        run.file(f"{header}.h", "")
    run.record("make", "-n", "-f", run.file("Makefile", "".join(lines)))


def rrdtool(run: Run, values: int, graphs: int) -> None:
    database = run.folder / "load.rrd"
    lines = [f"create {database} --start 1700000000 --step 60 DS:in:GAUGE:120:0:U DS:out:GAUGE:120:0:U"]
    lines[0] += " RRA:AVERAGE:0.5:1:600 RRA:MAX:0.5:6:700 RRA:HWPREDICT:300:0.1:0.0035:60"
    for number in range(1, values + 1):
        lines.append(f"update {database} {1700000000 + 60 * number}:{run.draw.randrange(900)}:{run.draw.randrange(90)}")
        if number % (values // graphs) == 0:
            span = f"--start 1700000000 --end {1700000000 + 60 * number}"
            lines.append(f"fetch {database} AVERAGE {span}")
            lines.append(f"xport {span} DEF:a={database}:in:MAX DEF:b={database}:out:AVERAGE CDEF:c=a,b,+ XPORT:c:sum")
    run.record("rrdtool", "-", text="\n".join([*lines, "quit\n"]))


def bc(run: Run, digits: int, terms: int) -> None:
    text = f"scale = {digits}\ndefine f(n) {{ if (n < 2) return 1; return n * f(n - 1); }}\n"
    text += "".join(f"f({run.draw.randint(5, digits)}) / {run.draw.randrange(1, 10**9)}\n" for _ in range(terms))
    run.record("bc", "-lq", text=text + "s(1) + e(2)\nquit\n")


def curl(run: Run, transfers: int) -> None:
    with run.web_site(run.port) as site:
        lines = []
        paths = sorted(site.rglob("*.txt"))
        for number in range(transfers):
            path = run.draw.choice(paths).relative_to(site)
            lines.append(f'url = "http://127.0.0.1:{run.port}/{path}?q={run.words(1)[0]}"\noutput = "got-{number}"\n')
        common = 'compressed\nparallel\nparallel-max = 6\nuser-agent = "device/1.0"\nheader = "X-Device: 17"\n'
        run.record("curl", "-s", "-K", run.file("transfers", common + "".join(lines)))


def wget(run: Run, pages: int) -> None:
    with run.web_site(run.port) as site:
        for number in range(pages):
            links = "".join(f'<a href="{run.draw.randrange(pages)}.html">{word}</a>' for word in run.words(6))
            text = "".join(f"<p class='{word}'>{word}</p>" for word in run.words(run.draw.randint(5, 60)))
            (site / f"{number}.html").write_text(f"<html><body>{links}{text}<img src='images/'></body></html>")
        run.record("wget", "-q", "-r", "-l", "6", "-P", run.folder / "copy", f"http://127.0.0.1:{run.port}/0.html")


def tcpdump(run: Run, packets: int, names: int) -> None:
    words = run.words(names)
    capture = bytearray(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
    for number in range(packets):
        if run.draw.random() < 0.5:
            name = b"".join(bytes([len(word)]) + word.encode() for word in run.draw.sample(words, 2)) + b"\0"
            body = struct.pack(">6H", number & 0xFFFF, 0x0100, 1, 0, 0, 0) + name + struct.pack(">2H", 1, 1)
            port = 53
        else:
            port = run.draw.choice((123, 5060, 161, 69, 4500))
            body = run.draw.randbytes(run.draw.randint(4, 400))
        udp = struct.pack(">4H", run.draw.randint(1024, 65535), port, 8 + len(body), 0) + body
        sender = struct.pack(">4B", 10, 0, run.draw.randrange(4), run.draw.randrange(names) % 250)
        ip = (
            struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), number & 0xFFFF, 0, 64, 17, 0)
            + sender
            + bytes([10, 0, 0, 1])
        )
        capture += (
            struct.pack("<4I", 1700000000 + number // 50, number % 50 * 20000, len(ip + udp), len(ip + udp)) + ip + udp
        )
    path = run.folder / "capture.pcap"
    path.write_bytes(capture)
    run.record("tcpdump", "-n", "-vv", "-r", path, "udp and not port 9")


def sftp(run: Run, files: int) -> None:
    names = [f"{word}-{number}" for number, word in enumerate(run.words(files))]
    batch = ["mkdir remote", "cd remote"]
    for name in names:
        path = run.file(f"local/{name}", "x" * int(run.draw.expovariate(1 / 20_000)))
        batch.append(f"put {path}")
        if run.draw.random() < 0.4:
            batch.append(f"get {run.draw.choice(names[: names.index(name) + 1])} {run.folder}/got")
        if run.draw.random() < 0.2:
            batch += ["ls -l", f"rename {name} {name}.old"] if run.draw.random() < 0.5 else ["ls", f"rm {name}"]
    batch += ["ls -l", "bye"]
    batch = [f"-{line}" if line.startswith(("get", "rm")) else line for line in batch]
    server = run.file(
        "server", f"#!/bin/sh\nexec {' '.join(map(str, run.recording(['/usr/lib/openssh/sftp-server'])))}\n"
    )
    server.chmod(0o700)
    run.run("sftp", "-q", "-b", run.file("batch", "\n".join(batch) + "\n"), "-D", server)


def git(run: Run, files: int, commits: int) -> None:
    repository = run.folder / "repository"
    run.run("git", "init", "-q", repository)
    names = ["/".join(run.words(run.draw.randint(1, 3))) + f"-{number}" for number in range(files)]
    texts = {name: run.words(run.draw.randint(5, 90)) for name in names}
    stream = []
    for number in range(commits):
        message = " ".join(run.words(run.draw.randint(2, 20)))
        stream.append(f"commit refs/heads/main\ncommitter A <a@example> {1700000000 + number * 900} +0000\n")
        stream.append(f"data {len(message)}\n{message}\n")
        for name in names if not number else run.draw.sample(names, run.draw.randint(1, 4)):
            lines = texts[name]
            lines[run.draw.randrange(len(lines))] = " ".join(run.words(4))
            text = "\n".join(lines) + "\n"
            stream.append(f"M 100644 inline {name}\ndata {len(text)}\n{text}\n")
    subprocess.run(["git", "-C", repository, "fast-import", "--quiet"], input="".join(stream), text=True, check=True)
    run.record("git", "-C", repository, "log", "-p", "--stat", "-M", "main")
