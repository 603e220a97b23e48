# make demo   set up, explore a shipped trace, ship the winner as C, write the report
# make test   set up, build, run every test
# make bench  speed ratios, measured side by side
# make lint   ruff, mypy, clang-format and a strict compile of the C core
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# An editable installation knows its modules by name: it is made anew when one is added, moved or removed.
STAMP  := $(VENV)/.installed-$(shell find src -name '*.py' | sort | cksum | cut -d' ' -f1)

SOURCES := pyproject.toml CMakeLists.txt $(wildcard csrc/*.h native/* recorder/*)

.PHONY: setup demo test bench lint format clean

setup: $(STAMP)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# Editable, so that Python sources are live; the C is rebuilt whenever it changed.
$(STAMP): $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet -e '.[dev,target]'
	touch $@

demo: setup
	$(BIN)/python examples/demo.py

test: setup
	$(BIN)/python -m pytest -n 2

bench: setup
	$(BIN)/python bench/run.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror csrc/*.h native/*.[ch] recorder/*.[ch] tests/c/*.[ch] src/heapwright/*/*.c src/heapwright/target/driver/*.[ch]
	$(CC) -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Werror -ffreestanding -fsyntax-only -Icsrc tests/c/strict_compile.c
	$(CC) -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Werror -DHW_EXPLORE -fsyntax-only -Icsrc tests/c/strict_compile.c

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i csrc/*.h native/*.[ch] recorder/*.[ch] tests/c/*.[ch] src/heapwright/*/*.c src/heapwright/target/driver/*.[ch]

clean:
	rm -rf build $(VENV) demo
