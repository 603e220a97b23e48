# make demo   set up, explore a shipped trace, ship the winner as C, write the report
# make core   after an edit of the C: compile the replay engine alone, in seconds
# make test   set up, build, run every test
# make nightly, make mutants   long campaigns, and the score of the tests; hours
# make bench  speed ratios, measured side by side
# make ports  compile the ports with the headers of public trees, from the folder HEAPWRIGHT_TREES
# make lint   ruff, mypy, clang-format and the C warnings
# make docs   docs/ as a site in build/site
# make publish VERSION=1.2.3 ALIAS=latest   that site as a version of its own, on the branch gh-pages of REMOTE
# make pictures   the pictures of docs/ again
PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
# An editable installation knows its modules by name: it is made again when one is added, moved or removed. For
# papers/ it is a path, and needs no more.
PACKAGE := $(VENV)/.package-$(shell find src -name '*.py' | sort | cksum | cut -d' ' -f1)
TOOLS   := $(VENV)/.tools
INSTALL := $(BIN)/python -m pip install --quiet --constraint requirements/constraints.txt

# What the build needs lies in a place of its own: from a folder that is new each time, as pip makes one, all C would be
# compiled again. What scikit-build-core wants as well, cmake or ninja where the machine has none, it says itself.
NEEDS   := $(VENV)/.needs
NEEDED   = $(shell sed -n 's/^$(1) = \[\(.*\)\]$$/\1/p' pyproject.toml | sed 's/", "/" "/g')
IN_NEEDS = PATH="$(CURDIR)/$(NEEDS)/bin:$$PATH" PYTHONPATH="$(CURDIR)/$(NEEDS)"
WITH     = $(IN_NEEDS) $(BIN)/python
WANTED  := from scikit_build_core.build import get_requires_for_build_editable as wanted; print(*wanted())
PREPARE  = rm -rf $(NEEDS) && $(INSTALL) --no-compile --target $(NEEDS) $(call NEEDED,requires) && \
           wanted=$$($(WITH) -c '$(WANTED)') && \
           if [ "$$wanted" ]; then $(INSTALL) --no-compile --target $(NEEDS) --upgrade $$wanted; fi && touch $(NEEDS)
BUILD    = $(subst $(BIN)/python,$(WITH),$(INSTALL)) --no-build-isolation --no-deps --editable .

SOURCES := pyproject.toml papers/pyproject.toml requirements/constraints.txt CMakeLists.txt \
           $(wildcard csrc/*.h csrc/*/*.h native/* recorder/*) \
           $(addprefix src/heapwright/_generate/, core.py parse.py pasting.py syntax.py)

# Else each process that a test starts compiles the package again, a second of its time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup core demo test nightly mutants bench ports lint lint-c pages docs publish pictures format clean

setup: $(TOOLS)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(NEEDS): pyproject.toml $(BIN)/python
	@echo "Fetching what the build needs"
	@$(PREPARE)

# Editable, so that Python sources are live; of the C what changed is built.
$(PACKAGE): $(NEEDS) $(SOURCES)
	$(BUILD)
	$(INSTALL) --editable papers
	rm -f $(VENV)/.package-*
	touch $@

# The package is there: this adds the extras' requirements alone.
$(TOOLS): $(PACKAGE)
	$(INSTALL) 'heapwright[dev,docs,target]'
	touch $@

# The stamp goes: the next `make setup` puts the engine with its copies back.
build/core: CMakeLists.txt
	@$(IN_NEEDS) cmake -C build/Release/CMakeInit.txt -S . -B $@ -D HEAPWRIGHT_COPIES=OFF > /dev/null
	@touch $@

core: $(if $(wildcard $(TOOLS)),,setup) build/core
	@rm -f $(VENV)/.package-*
	@$(IN_NEEDS) cmake --build build/core --target _native --parallel > /dev/null
	@cp build/core/_native.abi3.so $(wildcard $(VENV)/lib/python3*/site-packages/heapwright)

$(VENV)/.docs: $(PACKAGE)
	$(INSTALL) 'heapwright[docs]'
	touch $@

# The package is built while what it needs comes. What the demo imports is compiled as it is imported, which is less
# than all. Without an emulator for this machine the demo leaves measuring out.
$(VENV)/.demo: INSTALL += --no-compile
$(VENV)/.demo: $(BIN)/python $(SOURCES)
	@echo "Setting up in $(VENV): C is compiled while packages come, half a minute on two processors"
	@{ $(BIN)/python -m pip install --quiet --no-compile --require-hashes --requirement requirements/install.txt && \
	{ $(INSTALL) $(call NEEDED,target) || true; }; } & \
	$(PREPARE) && $(BUILD) && wait $$!
	touch $@

demo: $(if $(wildcard $(TOOLS)),setup,$(VENV)/.demo)
	$(BIN)/heapwright demo demo

# A third process works where two wait for browsers and servers. Studies wait for the disk at each step: tests write to
# memory where it has 4 GB of room for files, and programs run there.
test: setup
	@room=$$(df --output=avail /dev/shm 2> /dev/null | tail -1); \
	if [ "$${room:-0}" -gt 4000000 ] && ! grep -q ' /dev/shm .*noexec' /proc/mounts; then \
		export TMPDIR=$$(mktemp -d /dev/shm/heapwright-XXXXXX) && chmod 755 $$TMPDIR && trap 'rm -rf "$$TMPDIR"' EXIT; \
	fi; \
	$(BIN)/python -m pytest -n 3 --dist worksteal

# What the usual run does briefly, ten times as long, with a seed of its own; inputs that reached new code are kept. At
# the end it says how many of each kind were tried.
CAMPAIGNS = $(shell grep -lE '^(from|import) run_length\b|^from c_programs .*\b(LEVEL|SANITIZED)\b' tests/*/test_*.py)

nightly: export HEAPWRIGHT_FUZZ ?= 10
nightly: export HEAPWRIGHT_SEED ?= $(shell date +%j)
nightly: export HEAPWRIGHT_CORPUS ?= $(CURDIR)/build/corpus
nightly: export HEAPWRIGHT_OPERATIONS := $(CURDIR)/build/operations
nightly: setup
	rm -f $(HEAPWRIGHT_OPERATIONS)
	$(BIN)/python -m pytest -n 2 --dist worksteal $(CAMPAIGNS)
	@awk '{ n = $$1; $$1 = ""; tried[$$0] += n } END { for (what in tried) print tried[what] what }' $(HEAPWRIGHT_OPERATIONS)
	$(BIN)/python bench/cliffs.py --pairs 5000 --seed $(HEAPWRIGHT_SEED) --most 250

# The share of small code changes that tests notice, from a sample of each package, another one each day.
mutants: setup
	$(INSTALL) coverage
	$(BIN)/python -m pytest -q research/mutation
	$(BIN)/python research/mutation/planted.py
	$(BIN)/python research/mutation/mutate.py --sample 40 --minutes 9 --seed $${HEAPWRIGHT_SEED:-$$(date +%j)}

bench: setup
	$(BIN)/python bench/run.py

C_FILES    = $(shell find csrc native recorder src tests examples -name '*.[ch]' -not -path '*/templates/*')
C_WARNINGS = -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only -Icsrc

# What is not there is skipped, with the reason. tests/platforms/trees.toml says how to get the trees.
ports: setup
	$(BIN)/python -m pytest -q -rs tests/platforms/test_platform_trees.py

lint: setup lint-c
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(C_FILES)

lint-c:
	$(CC) $(C_WARNINGS) -ffreestanding tests/c/strict_compile.c
	$(CC) $(C_WARNINGS) -DHW_EXPLORE tests/c/strict_compile.c
	$(CC) $(C_WARNINGS) -DHW_EXPLORE -Inative native/*.c recorder/*.c

pages: $(VENV)/.docs
	rm -rf build/pages && mkdir -p build/pages
	sed -E 's#https://(github.com/heapwright/heapwright/blob|raw.githubusercontent.com/heapwright/heapwright)/main/##g' README.md > build/pages/README.md
	cp -r --parents CONTRIBUTING.md CHANGELOG.md LICENSE docs bench/README.md bench/exploits.md bench/ports.md bench/robustness.md examples/README.md build/pages
	if [ -d build/papers ]; then mkdir build/pages/docs/papers/pages && \
		cp build/papers/*.html build/papers/*.png build/papers/*.svg build/pages/docs/papers/pages && \
		printf '\n[All pages, made without recorded packets](pages/README.html).\n' >> build/pages/docs/papers/README.md; fi

docs: export NO_MKDOCS_2_WARNING = 1
docs: pages
	$(BIN)/mkdocs build --strict --quiet

# The alias is where the site's own address leads.
REMOTE ?= origin
publish: export NO_MKDOCS_2_WARNING = 1
publish: export PATH := $(abspath $(BIN)):$(PATH)
publish: pages
	$(BIN)/mike --quiet deploy --push --remote $(REMOTE) --update-aliases $(VERSION) $(ALIAS)
	$(if $(ALIAS),$(BIN)/mike --quiet set-default --push --remote $(REMOTE) $(ALIAS))

pictures: setup
	PYTHONPATH=docs $(BIN)/python -m pictures

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(C_FILES)

clean:
	rm -rf build $(VENV) demo
