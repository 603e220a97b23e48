"""A generated folder as a package: built by CMake both ways a project takes it, and read as other tools read it."""

from __future__ import annotations

import re
from pathlib import Path

from platform_builds import run
from tool_requirements import tool

import heapwright as hw

WARNINGS = "-Wall -Wextra -Werror"
CONSUMER = """\
cmake_minimum_required(VERSION 3.14)
project(consumer C)
add_subdirectory(app)
include(FetchContent)
FetchContent_Declare(net_heap SOURCE_DIR ${CMAKE_CURRENT_SOURCE_DIR}/net)
FetchContent_MakeAvailable(net_heap)
add_executable(firmware main.c)
target_link_libraries(firmware PRIVATE app_heap net_heap)
"""
MAIN = """\
#include "app_heap.h"
#include "net_heap.h"

static _Alignas(APP_ARENA_ALIGNMENT) unsigned char app_arena[32768];
static _Alignas(NET_ARENA_ALIGNMENT) unsigned char net_arena[32768];

int main(void)
{
    struct app_heap *app = app_init(app_arena, sizeof app_arena);
    struct net_heap *net = net_init(net_arena, sizeof net_arena);
    return app_malloc(app, 100) && net_malloc(net, 200) ? app_check(app) + net_check(net) : 1;
}
"""
OTHERS = """\
cmake_minimum_required(VERSION 3.14)
project(others LANGUAGES NONE)
macro(reported)
  message(STATUS "reported: ${ARGN}")
endmacro()
function(idf_component_register)
  reported(idf_component_register ${ARGN})
endfunction()
set(ESP_PLATFORM 1)
add_subdirectory(app esp)
set(ESP_PLATFORM 0)
foreach(name zephyr_library_named zephyr_library_sources zephyr_include_directories)
  cmake_language(EVAL CODE "function(${name})\\n  reported(${name} \\${ARGN})\\nendfunction()")
endforeach()
add_subdirectory(app zephyr)
"""


def test_a_project_takes_heaps_by_add_subdirectory_and_by_fetch_content(tmp_path: Path) -> None:
    for prefix, heap in (("app", "tlsf@16"), ("net", "victim-bins@16")):
        hw.generate(heap, tmp_path / prefix, prefix=prefix, package=True)
    (tmp_path / "CMakeLists.txt").write_text(CONSUMER)
    (tmp_path / "main.c").write_text(MAIN)
    run(
        [tool("cmake"), "-S", ".", "-B", "build", "-DCMAKE_C_COMPILER_WORKS=1", f"-DCMAKE_C_FLAGS={WARNINGS}"], tmp_path
    )
    run([tool("cmake"), "--build", "build"], tmp_path)
    run(["build/firmware"], tmp_path)


def test_esp_idf_and_zephyr_are_told_of_the_sources(tmp_path: Path) -> None:
    """By stubs of their functions: neither is installed."""
    hw.generate("tlsf", tmp_path / "app", package=True)
    (tmp_path / "CMakeLists.txt").write_text(OTHERS)
    printed = run([tool("cmake"), "-S", ".", "-B", "build"], tmp_path)
    assert re.findall(r"reported: (.*)", printed) == [
        "idf_component_register;SRCS;app_heap.c;INCLUDE_DIRS;.",
        "zephyr_library_named;app_heap",
        "zephyr_library_sources;app_heap.c",
        "zephyr_include_directories;.",
    ]
