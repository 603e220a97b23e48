"""What makes the folder of a generated heap a package: for CMake, PlatformIO, ESP-IDF and Zephyr's west.

Sources of the formats: CMake 3.13 (`add_library`), PlatformIO 6 (library.json), ESP-IDF 5 (idf_component_register and
idf_component.yml), Zephyr 3.7 (scripts/zephyr_module.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from heapwright._support.templates import template
from heapwright._support.version import __version__

_PACKAGE = "heapwright._generate"
_CMAKE = "CMakeLists.txt"
_SOURCES = (".c", ".cpp")
_INCLUDED = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)


def package_files(files: Mapping[str, str], prefix: str, about: str, *, replaces: bool = False) -> dict[str, str]:
    """The files that make a folder of these files a package of the name PREFIX_heap, by their names in it.

    Tests, what stands in the place of another file, and sources that others include are no part of its library. A
    folder that has a CMakeLists.txt already is Zephyr's alone, and becomes a module of it.

    Args:
        files: what the folder holds, texts by names.
        prefix: what every public name begins with.
        about: what it is, in a sentence.
        replaces: whether it takes the place of functions of the C library or the kernel: then it is linked whole.
    """
    name = f"{prefix}_heap"
    build = {"cmake": "."} | ({"kconfig": "Kconfig"} if "Kconfig" in files else {})
    module = {"zephyr/module.yml": _yaml({"name": name}) + "build:\n" + _yaml(build, "  ")}
    if _CMAKE in files:
        return module
    sources = _sources(files)
    values = {
        "name": name,
        "sources": sources,
        "replaces": replaces,
        "plus": any(source.endswith("pp") for source in sources),
    }
    library = {
        "name": name,
        "version": __version__,
        "description": about,
        "headers": f"{name}.h",
        "build": {
            "srcDir": ".",
            "includeDir": ".",
            "srcFilter": ["-<*>", *(f"+<{source}>" for source in sources)],
            **({"libArchive": False} if replaces else {}),
        },
    }
    return {
        _CMAKE: template(_PACKAGE, _CMAKE).render(values),
        "library.json": json.dumps(library, indent=2) + "\n",
        "idf_component.yml": _yaml({"version": __version__, "description": about}),
        **module,
    }


def _sources(files: Mapping[str, str]) -> list[str]:
    names = [PurePosixPath(name) for name in files]
    code = [item.name for item in names if item.suffix in _SOURCES and not item.stem.endswith(("_test", "_watched"))]
    included = {result for name in code for result in _INCLUDED.findall(files[name])}
    return [name for name in code if name not in included]


def _yaml(values: Mapping[str, str], indent: str = "") -> str:
    """Texts by keys; a JSON string is one of YAML."""
    return "".join(f"{indent}{key}: {json.dumps(value)}\n" for key, value in values.items())
