# What there is to do with this repository. Needs GNU make and Python 3.11, 3.12 or 3.13; `make help` lists the verbs.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# The interpreter .venv is made with: the first suitable one, unless PYTHON names it.
PYTHON ?=
SUITABLE := import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
CANDIDATES := python3 python3.13 python3.12 python3.11 python

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# How many processes run the tests, and more arguments for pytest.
JOBS ?= 2
ARGS ?=

# Everything that ends up in the wheel: when one of these is newer, it is built and installed again.
SOURCES := pyproject.toml README.md LICENSE $(shell find facade emulator wire fixtures pipeline \
	-type f \( -name '*.py' -o -name '*.js' -o -name '*.css' -o -name '*.html' -o -name '*.jinja' -o -name py.typed \))
# The folders too: a file that was deleted leaves only its folder newer.
FOLDERS := $(shell find facade emulator wire fixtures pipeline -type d -not -name __pycache__)

# Where the demo leaves its trace, and `make report` what it makes of it.
DEMO := build/demo
REPORT := build/report

.PHONY: help demo report test check ci-extra docs bench bench-pipeline spark-test fuzz soak explore conformance docker-test compose-demo spark-cluster-test clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z -]+:.*## / { printf "make %-36s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/made:
	@python="$(PYTHON)"; \
	if [ -z "$$python" ]; then \
	  for candidate in $(CANDIDATES); do \
	    if "$$candidate" -c '$(SUITABLE)' 2>/dev/null; then python="$$candidate"; break; fi; \
	  done; \
	  [ -n "$$python" ] || { echo "No Python 3.11, 3.12 or 3.13 with venv found; name one: make PYTHON=..." >&2; exit 1; }; \
	elif ! "$$python" -c '$(SUITABLE)' 2>/dev/null; then \
	  echo "PYTHON=$$python is not Python 3.11, 3.12 or 3.13 with venv" >&2; exit 1; \
	fi; \
	echo "== making $(VENV) with $$python ($$("$$python" -c 'import platform; print(platform.python_version())'))"; \
	rm -rf $(VENV); "$$python" -m venv $(VENV)
	@touch $@

# From nothing: setuptools would put what an earlier build left in build/lib into the wheel. The rest of build/ stays.
$(VENV)/wheel: $(VENV)/made $(SOURCES) $(FOLDERS)
	@echo "== building the wheel"
	@rm -rf build/lib build/bdist.* koordinator.egg-info $(VENV)/dist
	@$(PIP) wheel --no-deps --wheel-dir $(VENV)/dist .
	@rm -rf build/lib build/bdist.* koordinator.egg-info
	@touch $@

$(VENV)/demo-tools: pyproject.toml | $(VENV)/wheel
	@echo "== installing the emulator and the clients of the demo into $(VENV) (once)"
	@SECONDS=0; $(PIP) install "$$(echo $(VENV)/dist/*.whl)[demo]"; echo "== installed in $$SECONDS s"
	@touch $@

$(VENV)/test-tools: pyproject.toml | $(VENV)/wheel
	@echo "== installing what the tests need into $(VENV) (once; about a minute)"
	@SECONDS=0; $(PIP) install "$$(echo $(VENV)/dist/*.whl)[dev]"; echo "== installed in $$SECONDS s"
	@touch $@

$(VENV)/installed: $(VENV)/wheel
	@echo "== installing the wheel into $(VENV)"
	@$(PIP) install --force-reinstall --no-deps $(VENV)/dist/*.whl
	@touch $@

# For the pipeline: Spark itself is the largest part, and comes as source that has to be unpacked.
$(VENV)/spark-tools: pyproject.toml | $(VENV)/wheel
	@echo "== installing Spark, and Java for it, into $(VENV) (once; some 600 MB)"
	@SECONDS=0; $(PIP) install "$$(echo $(VENV)/dist/*.whl)[spark]"; echo "== installed in $$SECONDS s"
	@touch $@

# What the pipeline is compared with.
$(VENV)/engines: pyproject.toml | $(VENV)/spark-tools
	@echo "== installing DuckDB and Polars into $(VENV) (once)"
	@$(PIP) install "$$(echo $(VENV)/dist/*.whl)[engines]"
	@touch $@

demo: $(VENV)/demo-tools $(VENV)/installed ## six real consumers bounce, in a table and on a live page (HOLD=1 keeps it)
	@KEEP=$(DEMO) $(BIN)/python examples/demo.py

$(DEMO)/seen.json: | $(VENV)/demo-tools $(VENV)/installed
	@KEEP=$(DEMO) $(BIN)/python examples/demo.py

report: $(DEMO)/seen.json $(VENV)/spark-tools $(VENV)/installed ## the data pipeline over the demo's trace, as one page
	@rm -rf $(REPORT)
	@$(BIN)/koordinator-pipeline run --input $(DEMO)/trace.jsonl --output $(REPORT)/store
	@$(BIN)/koordinator-pipeline report --store $(REPORT)/store --title "The demo" \
	  --html $(REPORT)/report.html --markdown $(REPORT)/summary.md
	@$(BIN)/python examples/counted.py $(DEMO) $(REPORT)/store $(REPORT)/summary.md

test: check ## build the wheel, install it, check and test it (pytest arguments: ARGS)
	@echo "== pytest, on the installed wheel"
	@KOORDINATOR_WHEEL="$$(echo $(VENV)/dist/*.whl)" $(BIN)/pytest -n $(JOBS) $(ARGS)

check: $(VENV)/test-tools $(VENV)/installed ## ruff, mypy --strict and import-linter
	@echo "== ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@echo "== mypy --strict"
	@$(BIN)/mypy --strict -p koordinator
	@echo "== import-linter"
	@$(BIN)/lint-imports

ci-extra: $(VENV)/test-tools $(VENV)/spark-tools $(VENV)/engines $(VENV)/installed ## the tests that need Java, Chromium, Docker or Spark
	@status=0; \
	KOORDINATOR_WHEEL="$$(echo $(VENV)/dist/*.whl)" compose/engine.sh \
	  $(BIN)/pytest -m needs --ignore=tests/pipeline $(ARGS) || status=$$?; \
	$(MAKE) --no-print-directory spark-test || status=$$?; \
	exit $$status

# Apart from the others: they bear company, and have a Spark for each process.
spark-test: $(VENV)/test-tools $(VENV)/spark-tools $(VENV)/engines $(VENV)/installed ## those of them that need Spark (ARGS)
	@KOORDINATOR_WHEEL="$$(echo $(VENV)/dist/*.whl)" $(BIN)/pytest -m needs tests/pipeline \
	  -n $(JOBS) --dist loadfile $(ARGS)

spark-cluster-test: $(VENV)/test-tools $(VENV)/spark-tools $(VENV)/installed ## the pipeline on a cluster of two workers on loopback, and by spark-submit and Spark Connect
	@KOORDINATOR_REQUIRE=spark KOORDINATOR_WHEEL="$$(echo $(VENV)/dist/*.whl)" \
	  $(BIN)/pytest -m needs tests/pipeline/test_beyond_one_machine.py $(ARGS)

# A run that failed is done again with REPLAY=, its name, and the same SEED.
FRAMES ?= 1000000
SEED ?= 1
REPLAY ?=

fuzz: $(VENV)/test-tools $(VENV)/installed ## hostile frames for the broker ring (FRAMES, SEED, JOBS, REPLAY)
	@$(BIN)/python tests/fuzz/run.py --frames $(FRAMES) --seed $(SEED) --jobs $(JOBS) --replay "$(REPLAY)"

# How many events `make bench-pipeline` loads, one after the other.
TIERS ?= 2M,20M

# Arguments for bench/run.py: BENCH="--only codec --only start".
BENCH ?=

bench-pipeline: $(VENV)/engines $(VENV)/installed ## the data pipeline on 2M and 20M events, beside DuckDB and Polars (TIERS=100M)
	@$(BIN)/python bench/pipeline/run.py --tiers $(TIERS)

bench: $(VENV)/test-tools $(VENV)/installed ## speed beside others, with targets; build/bench.json (BENCH="--only codec")
	@$(BIN)/python bench/run.py $(BENCH)

# Arguments for tests/conformance/run.py: CONFORMANCE="--record", "--slow", ...
CONFORMANCE ?=

conformance: $(VENV)/test-tools $(VENV)/installed ## every scenario against real Kafka and the emulator (needs Java 17, Maven)
	@$(BIN)/python tests/conformance/run.py $(CONFORMANCE)
	@if [ -z "$(CONFORMANCE)" ]; then \
	  echo "== what groups write, decoded by Kafka's own code, and read from Kafka's own logs"; \
	  $(BIN)/pytest -m needs -q tests/kafka/test_offsets_topic.py; \
	fi

# How many random sequences; SEED, above, is the first.
SEEDS ?= 200

explore: $(VENV)/test-tools $(VENV)/installed ## random sequences against real Kafka and the emulator (SEEDS, SEED; needs Java 17, Maven)
	@$(BIN)/python tests/explore/run.py --seeds $(SEEDS) --first $(SEED)

ENGINE := compose/engine.sh bash -c 'timeout 20 docker info >/dev/null 2>&1 || { \
	echo "no Docker engine answers: set DOCKER_HOST, or KOORDINATOR_DOCKER_BOOTSTRAP=1 for a private one (root, Debian)"; \
	exit 2; } >&2; exec "$$@"' engine

docker-test: $(VENV)/test-tools $(VENV)/installed ## the image and its containers, with the engine of DOCKER_HOST
	@KOORDINATOR_REQUIRE=docker $(ENGINE) $(BIN)/pytest -m needs tests/docker $(ARGS)

compose-demo: $(VENV)/made ## two static consumers in containers; one is restarted
	@$(ENGINE) compose/demo.sh

docs: $(VENV)/test-tools $(VENV)/spark-tools $(VENV)/installed ## renew what is made from the code: parts of docs/, and koordinator.aio
	@PYTHONPATH=tests/support $(BIN)/python tools/documents.py
	@$(BIN)/python tools/aio_handles.py

# How often the server is killed; SEED, above, decides when. How often the most timing-sensitive tests are run.
KILLS ?= 100
REPEATS ?= 100

soak: $(VENV)/test-tools $(VENV)/installed ## SIGKILLs while members commit; sensitive tests again and again (KILLS, SEED, REPEATS)
	@$(BIN)/python tests/soak/run.py --kills $(KILLS) --seed $(SEED)
	@echo "== the most timing-sensitive tests, $(REPEATS) times each"
	@grep -v '^#' tests/soak/sensitive.txt | xargs $(BIN)/pytest -q -n $(JOBS) --count=$(REPEATS) $(ARGS)

clean: ## remove .venv and everything that was built or cached
	rm -rf $(VENV) build dist koordinator.egg-info .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache \
	  .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
