"""lwIP's own pools: recorded by the hooks, sized by `generate --memp`, and lwIP itself compiled with these lines."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import originals
import pytest
from c_programs import LEVEL
from click.testing import CliRunner
from platform_builds import BOARDS, fetched, run
from run_length import brief
from tool_requirements import programs_of_32_bits

import heapwright as hw
from heapwright._cli import heapwright
from heapwright._heaps.lwip_pools import option_lines, pools_of
from heapwright._traces.trace import Trace

TRACED = BOARDS / "traced"
SUITES = ["trixie", "bookworm"]


def command(suite: str, *more: str | Path) -> list[str | Path]:
    """The compiler's, for UDP over lwIP's loopback interface on 32 bits."""
    lwip = fetched(lambda: originals.lwip(suite))
    core = [*sorted((lwip / "core").glob("*.c")), *sorted((lwip / "core/ipv4").glob("*.c"))]
    folders: list[str | Path] = [
        f"-I{TRACED / 'lwip'}",
        f"-I{BOARDS / 'lwip'}",
        f"-I{TRACED}",
        "-isystem",
        lwip / "include",
    ]
    sources: list[str | Path] = [TRACED / "lwip_packets.c", BOARDS / "lwip/system.c", *core]
    return ["gcc", "-m32", "-no-pie", LEVEL, "-g", "-w", *more, *folders, *sources]


def recorded(suite: str, folder: Path) -> Trace:
    """What the hooks record with call sites."""
    hooks = folder / "trace"
    sources = [path for path in hw.hooks("lwip", hooks) if path.suffix == ".c"]
    wrap = ",".join(["-Wl", *dict.fromkeys(re.findall(r"--wrap=\w+", (hooks / "app_trace_README.md").read_text()))])
    flags = ["-DTRACED", "-DAPP_TRACE_SITES=1", f"-I{hooks}"]
    run([*command(suite, *flags, *sources), wrap, "-o", "packets"], folder)
    (folder / "console.log").write_text(run(["./packets"], folder))
    return hw.import_log(folder / "console.log", elf=folder / "packets")


@pytest.mark.parametrize("suite", brief(SUITES[:1], SUITES))
def test_lwip_serves_the_recorded_load_with_the_written_options_and_not_with_much_less(
    suite: str, tmp_path: Path
) -> None:
    programs_of_32_bits(compiler="gcc")
    trace = recorded(suite, tmp_path)
    found = {pool.name: (pool.most, pool.certain) for pool in pools_of(trace)}
    assert found["UDP_PCB"] == (2, True) and found["SYS_TIMEOUT"][1]
    trace.write(tmp_path / "app.parquet")
    words = ["generate", "tlsf", "--platform", "lwip", "--memp", str(tmp_path / "app.parquet"), "-o", str(tmp_path)]
    done = CliRunner().invoke(heapwright, words)
    assert done.exit_code == 0, done.output
    written = (tmp_path / "app_lwip_pools.h").read_text()
    options = (TRACED / "lwip/lwipopts.h").read_text()
    options = re.sub(r"#define (MEM_SIZE|MEMP_NUM_PBUF) .*\n", "", options)
    for scale, served in ((1, True), (0.5, False)):
        (size,) = re.findall(r"#define MEM_SIZE (\d+)", written)
        text = written.replace(f"MEM_SIZE {size}", f"MEM_SIZE {int(int(size) * scale)}")
        (tmp_path / "app_lwip_pools.h").write_text(text)
        (tmp_path / "lwipopts.h").write_text(options.replace("#endif", '#include "app_lwip_pools.h"\n#endif'))
        run([*command(suite, f"-I{tmp_path}"), "-o", "sized"], tmp_path)
        said = subprocess.run(["./sized"], cwd=tmp_path, capture_output=True, text=True, timeout=60).stdout
        assert ("400 received" in said) == served


def connections() -> Trace:
    """Three connections of 156 bytes, as lwIP has them for IPv4 on 32 bits, with segments and packets."""
    sizes = [156] * 3 + [40] * 2 + [32] + [16] * 8 + [1532] * 12 + [700, 300]
    live = range(len(sizes))
    op, size = [0] * len(sizes) + [3] * len(sizes), [*sizes, *[0] * len(sizes)]
    return Trace.from_columns(op=op, id=[*live, *live], size=size, name="guessed")


@pytest.mark.parametrize("suite", SUITES)
def test_lwips_own_checks_accept_the_lines_of_every_pool(suite: str, tmp_path: Path) -> None:
    """src/core/init.c stops at numbers that TCP, timers or reassembly cannot do with."""
    programs_of_32_bits(compiler="gcc")
    lwip = fetched(lambda: originals.lwip(suite))
    hw.generate("tlsf", tmp_path, platform="lwip", memp=connections())
    options = "#define NO_SYS 1\n#define LWIP_NETCONN 0\n#define LWIP_SOCKET 0\n#define MEM_ALIGNMENT 4\n"
    (tmp_path / "lwipopts.h").write_text(f'{options}#include "app_lwip_pools.h"\n')
    folders: list[str | Path] = [f"-I{tmp_path}", f"-I{BOARDS / 'lwip'}", "-isystem", lwip / "include"]
    run(["gcc", "-m32", "-w", "-c", *folders, lwip / "core/init.c", lwip / "core/memp.c"], tmp_path)


def test_sizes_alone_are_a_guess_and_say_which_other_pools_they_may_be() -> None:
    trace = connections()
    pools = {pool.name: pool for pool in pools_of(trace)}
    assert pools["TCP_PCB"].most == 3 and not any(pool.certain for pool in pools.values())
    assert "PBUF" in pools["TCP_SEG"].others and pools["TCP_SEG"].most == 8
    text = "\n".join(option_lines(list(pools.values()), lambda most: most))
    assert "#define PBUF_POOL_SIZE 12 /* 12 of 1,532 B at once; guessed by size */" in text
    assert "#define PBUF_POOL_BUFSIZE 1516" in text
    assert "#define MEMP_NUM_TCP_SEG (8 > TCP_SND_QUEUELEN ? 8 : TCP_SND_QUEUELEN)" in text


def test_functions_that_allocate_from_one_pool_alone_name_it() -> None:
    sites = ("", "tcp_alloc (tcp.c:1844)", "pbuf_alloc (pbuf.c:245)", "http_accept (httpd.c:9)")
    site = [1, 1, *[2] * 12, 3]
    size = [196, 196, *[1532] * 12, 60]
    trace = Trace.from_columns(op=[0] * 15, id=range(15), size=size, site=site, sites=sites, name="t")
    pools = {pool.name: pool for pool in pools_of(trace)}
    assert (pools["TCP_PCB"].most, pools["TCP_PCB"].certain) == (2, True)
    assert (pools["PBUF_POOL"].most, pools["PBUF_POOL"].certain) == (12, False), "pbuf_alloc takes from the heap, too"
    assert set(pools) == {"TCP_PCB", "PBUF_POOL"}


def test_a_trace_without_pools_is_an_error_of_one_line(tmp_path: Path) -> None:
    trace = Trace.from_columns(op=[0], id=[0], size=[100], name="none")
    with pytest.raises(hw.HeapwrightError, match="none: no objects of lwIP's pools"):
        hw.generate("tlsf", tmp_path, platform="lwip", memp=trace)
    with pytest.raises(hw.HeapwrightError, match="are for the platform lwip"):
        hw.generate("tlsf", tmp_path, memp=trace)
