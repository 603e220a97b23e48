"""Other people's allocators and recorders as released, fetched through this machine's own package managers.

They come from crates and from Debian's source packages into `build/originals`, once; none is part of the repository.
Every function raises MissingError where something cannot be had.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "originals"
SECONDS = 300


class MissingError(Exception):
    """What cannot be had, and why, in one line."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what} cannot be had: {why}")


def tree(name: str) -> Path:
    """A folder of sources that no package carries, in the folder that $HEAPWRIGHT_TREES names."""
    result = Path(os.environ.get("HEAPWRIGHT_TREES") or CACHE) / name
    if not result.is_dir():
        raise MissingError(f"{name}", "no package carries it; put its sources into $HEAPWRIGHT_TREES")
    return result


def crate(name: str, version: str, path: str) -> Path:
    """A folder of a crate."""
    home = CACHE / "cargo"
    with alone():
        if not any(home.glob(f"registry/src/*/{name}-{version}")):
            run(["cargo", "info", f"{name}@{version}"], CACHE, f"crate {name}", {"CARGO_HOME": str(home)})
    results = [folder / path for folder in home.glob(f"registry/src/*/{name}-{version}")]
    if not results:
        raise MissingError(f"crate {name} {version}", "cargo did not unpack it")
    return results[0]


def debian(package: str, suite: str, path: str) -> Path:
    """A folder of the upstream sources of a Debian source package, in that suite; all of them for an empty path."""
    folder = CACHE / f"{package}-{suite}"
    with alone():
        if not any(folder.glob(f"*/{path}")):
            _unpack(_tarball(package, suite), folder, path)
    result = next(folder.glob(f"*/{path}"), None)
    if result is None:
        raise MissingError(f"{path} of {package} in {suite}", "its sources hold no such folder")
    return result


def dlmalloc() -> Path:
    """Doug Lea's allocator, 2.8.6, one file."""
    return debian("libffi", "bookworm", "src") / "dlmalloc.c"


def o1heap() -> Path:
    """The folder of Pavel Kirienko's half-fit."""
    return crate("o1heap", "0.0.2", "o1heap/o1heap")


def freertos() -> Path:
    """The folder of FreeRTOS's heaps."""
    return crate("freertos-next", "0.12.0", "FreeRTOS-Kernel/portable/MemMang")


def systemview() -> Path:
    """The folder of SEGGER's SystemView recorder, 3.32."""
    return crate("systemview-target", "0.3.0", "lib/SEGGER")


def tlsf() -> Path:
    """The folder of Matthew Conte's TLSF: 3.0 with one test added, the nearest to 3.1 that a package carries."""
    return debian("zynaddsubfx", "bookworm", "tlsf")


def espressif_tlsf() -> Path:
    """The folder of the TLSF of ESP-IDF, github.com/espressif/tlsf at ba64d198a845."""
    return tree("espressif-tlsf")


def lvgl() -> Path:
    """The folder with src/ and include/ of LVGL, github.com/lvgl/lvgl at 7cc13aafaa2e."""
    return tree("lvgl")


def nuttx() -> Path:
    """The folder with mm/ and include/ of NuttX, github.com/apache/nuttx at 4ebc8a7291df."""
    return tree("nuttx")


def rt_thread() -> Path:
    """The folder with src/ of RT-Thread 5.1.0, github.com/RT-Thread/rt-thread."""
    return tree("rt-thread")


def lea() -> Path:
    """The folder of malloc 2.7.2, as uClibc-ng 1.0.35 has it; its header gets a guard, as here all is one file."""
    guarded = CACHE / "lea-2.7.2"
    released = debian("uclibc", "bookworm", "libc/stdlib/malloc-standard")
    with alone():
        if not guarded.is_dir():
            fresh = guarded.with_suffix(".new")
            shutil.rmtree(fresh, ignore_errors=True)
            shutil.copytree(released, fresh)
            header = fresh / "malloc.h"
            header.write_text("#pragma once\n" + header.read_text())
            fresh.rename(guarded)
    return guarded


def lwip(suite: str = "trixie") -> Path:
    """The folder of lwIP: 2.2.1 in trixie, 2.1.3 in bookworm."""
    return debian("lwip", suite, "src")


def lwip_contrib() -> Path:
    """The folder of lwIP's example application and its port for FreeRTOS, in addition to `lwip()` of trixie."""
    return debian("lwip", "trixie", "contrib")


def umm_malloc() -> Path:
    """The folder of Ralph Hempel's umm_malloc 1.1.2."""
    return crate("umm-malloc-sys", "0.3.2", "umm_malloc/src")


def mbedtls() -> Path:
    """The folder of mbedTLS 3.6."""
    return debian("mbedtls", "trixie", "")


def _tarball(package: str, suite: str) -> Path:
    """Downloaded through a list of sources of its own: most machines list Debian's binaries alone.

    What is checked is each file's checksum in the index, which is signed; the package's own description is not needed.
    """
    site = run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian", "Label: Debian", "Component: main"],
        ROOT,
        "Debian's archive",
    ).split()
    if not site:
        raise MissingError(
            f"Debian's source package {package}", "apt has no index of Debian's archive; run apt-get update"
        )
    state = CACHE / f"apt-{suite}"
    (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (state / "sources.list").write_text(f"deb-src {site[0]} {suite} main\n")
    options = ["-o", f"Dir::Etc::SourceList={state}/sources.list", "-o", "Dir::Etc::SourceParts=/dev/null"]
    options += ["-o", f"Dir::State::Lists={state}/lists", "-o", f"Dir::Cache={state}", "-o", "Debug::NoLocking=1"]
    options += ["-o", "Acquire::Retries=3"]
    if not any((state / "lists").glob("*Sources*")):
        run(["apt-get", *options, "update"], state, f"Debian's index of sources of {suite}")
    command = ["apt-get", *options, "source", "--download-only", f"{package}/{suite}"]
    said = run(command, state, f"Debian's source package {package}", must=False)
    result = next(state.glob(f"{package}_*.orig.tar.*"), None)
    if result is None:
        said = (said.strip().splitlines() or ["nothing came"])[-1]
        raise MissingError(f"Debian's source package {package} in {suite}", said)
    return result


def _unpack(tarball: Path, folder: Path, path: str) -> None:
    fresh = folder.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    wanted = f"*/{path}/*" if path else "*"
    run(["tar", "-xf", str(tarball), "-C", str(fresh), "--wildcards", wanted], fresh, tarball.name)
    if folder.is_dir():  # with other parts of these sources
        for part in fresh.glob(f"*/{path}"):
            part.rename(folder / part.relative_to(fresh))
        shutil.rmtree(fresh)
    else:
        fresh.rename(folder)


@contextmanager
def alone() -> Iterator[None]:
    """One process of this checkout fetches at a time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(
    command: Sequence[str], folder: Path, what: str, variables: Mapping[str, str] | None = None, must: bool = True
) -> str:
    """What the command printed; on stderr, where it need not succeed."""
    environment = {**os.environ, "LC_ALL": "C", **(variables or {})}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingError(what, str(error)) from None
    if must and done.returncode:
        raise MissingError(what, (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    return done.stdout if must else done.stderr
