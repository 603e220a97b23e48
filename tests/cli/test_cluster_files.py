"""The image and the manifest of `examples/cluster`: what they name is there, and commands take their words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from heapwright._cli import heapwright

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "examples" / "cluster"


def copied() -> list[Path]:
    """What the first stage of the image takes from the checkout."""
    text = (CLUSTER / "Containerfile").read_text(encoding="utf-8")
    lines = [line.split()[1:-1] for line in text.splitlines() if line.startswith("COPY ") and "--from" not in line]
    return [ROOT / name for names in lines for name in names]


def containers() -> list[tuple[str, dict[str, Any]]]:
    documents = yaml.safe_load_all((CLUSTER / "kubernetes.yaml").read_text(encoding="utf-8"))
    pods = [document["spec"]["template"]["spec"] for document in documents if "template" in document["spec"]]
    return [(container["name"], container) for pod in pods for container in pod["containers"]]


def test_the_image_has_all_that_the_package_is_built_of() -> None:
    taken = copied()
    assert [path for path in taken if not path.exists()] == []
    links = [path.resolve() for path in (ROOT / "src").rglob("*") if path.is_symlink()]
    built = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    named = [ROOT / name for name in re.findall(r"install\((?:FILES|DIRECTORY) ([\w./]+)", built)]
    assert links and named
    for path in (*links, *named):
        assert any(path == item or item in path.parents for item in taken), path


@pytest.mark.parametrize(("name", "container"), containers())
def test_a_container_is_closed_and_runs_what_there_is(name: str, container: dict[str, Any]) -> None:
    closed = container["securityContext"]
    assert closed["readOnlyRootFilesystem"] and not closed["allowPrivilegeEscalation"]
    program, *words = container["command"]
    if name != "explore":
        assert program == "dask" and words[0] in ("scheduler", "worker")
        return
    command = heapwright.get_command(None, words[0])  # type: ignore[arg-type]
    assert program == "heapwright" and command is not None
    given = command.make_context(words[0], words[1:]).params
    assert given["dask"] == "tcp://heapwright-scheduler:8786"
