"""The platform `rust`: the crate's own tests, by cargo."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from platform_builds import page_commands
from processes import finished
from tool_requirements import missing, tool

import heapwright as hw

TESTS = 8
HANGS_AFTER_SECONDS = 25
"""Dependencies are built, and the tests take a second or two; wrong glue may make them wait forever."""


def written(folder: Path, **keys: object) -> Path:
    """The crate, for a heap at this machine's alignment."""
    heap = hw.zoo("tlsf").at_alignment(16).model_copy(update=keys)
    hw.generate(heap, folder, prefix="net", platform="rust")
    return folder


def quickly(target: Path) -> dict[str, str]:
    """Cargo keeps there what it has built, and makes nothing for debuggers or for its next run on these sources."""
    return {**os.environ, "CARGO_TARGET_DIR": str(target), "CARGO_INCREMENTAL": "0", "CARGO_PROFILE_DEV_DEBUG": "0"}


def after_cargo(folder: Path, target: Path, seconds: int = 300) -> subprocess.CompletedProcess[str]:
    """The page's command."""
    (command,) = page_commands(folder, "cargo test")
    tool("cargo")
    return finished(command, folder, seconds, quickly(target))


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where cargo keeps what it has built; the crate that compiles C has to be had."""
    folder = tmp_path_factory.mktemp("target")
    crate = written(tmp_path_factory.mktemp("crate"))
    done = subprocess.run([tool("cargo"), "fetch"], cwd=crate, capture_output=True, text=True, timeout=300)
    if done.returncode:
        missing(f"the crate cc cannot be had: {done.stderr}")
    command = [tool("cargo"), "test", "--no-run"]
    assert finished(command, crate, 300, quickly(folder)).returncode == 0
    return folder


@pytest.mark.parametrize("keys", [{}, {"threads": "lock", "checks": "frees"}])
def test_collections_live_in_the_heap(keys: dict[str, object], target: Path, tmp_path: Path) -> None:
    done = after_cargo(written(tmp_path, **keys), target)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"test result: ok. {TESTS} passed; 0 failed; 0 ignored" in done.stdout
    assert not re.search(r"^warning", done.stderr, re.MULTILINE), done.stderr


@pytest.mark.parametrize(
    ("glue", "right", "wrong"),
    [
        ("net_rust.c", ": net_aligned_alloc(heap, alignment, size)", ": net_malloc(heap, size)"),
        ("net_rust.c", "had < size ? had : size", "0"),
        ("net_rust.rs", "net_free(heap, pointer)", "let _ = (heap, pointer);"),
    ],
)
def test_the_tests_notice_wrong_glue(glue: str, right: str, wrong: str, target: Path, tmp_path: Path) -> None:
    file = written(tmp_path) / glue
    text = file.read_text()
    assert right in text
    file.write_text(text.replace(right, wrong))
    assert after_cargo(tmp_path, target, HANGS_AFTER_SECONDS).returncode != 0


PROGRAM = """
static HEAP: net_heap::Heap<Masked, 1048576> = net_heap::Heap::new(Masked);

fn main() {
    let texts: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
    println!("{} {}", texts.concat().len(), HEAP.is_whole() && HEAP.statistics().used_blocks > 1000);
}
"""
MANIFEST = """
[package]
name = "program"
version = "0.1.0"
edition = "2021"

[dependencies]
net_heap = {{ path = "{crate}" }}
critical-section = {{ version = "1", features = ["std"] }}
"""


def test_a_program_takes_the_lock_of_the_page(target: Path, tmp_path: Path) -> None:
    page = (written(tmp_path / "heap") / "net_README.md").read_text()
    (lock,) = re.findall(r"^    struct Masked;\n(?:(?:    .*)?\n)*", page, re.MULTILINE)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.rs").write_text(f"{lock}\n#[global_allocator]{PROGRAM}")
    (tmp_path / "Cargo.toml").write_text(MANIFEST.format(crate=tmp_path / "heap"))
    command = [tool("cargo"), "run", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, env=quickly(target), capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "2890 true\n"), done.stderr
