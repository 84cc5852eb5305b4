# Development tasks. Needs GNU make and Python 3.11 to 3.15; `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# The interpreter for .venv: the first suitable candidate, unless PYTHON names one.
PYTHON ?=
SUITABLE := import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 15))
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python3.15 python

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# After a failed installation. The emulator needs no compiler on 3.15, but some of the clients and test tools do.
NO_WHEELS = { $(BIN)/python -c 'import sys; sys.version_info < (3, 15) or print("Some clients have no wheels for", \
	"Python 3.15 yet, confluent-kafka for one. Use an older Python: make clean, then make PYTHON=python3.14 ...")'; exit 1; }

# Targets that run beside each other remember which tests failed, for `ARGS=--last-failed`.
PYTEST = $(BIN)/pytest -o cache_dir=.pytest_cache/$@

# The number of test processes, extra arguments for pytest, and the file or folder of `make quick`.
JOBS ?= 2
ARGS ?=
T ?=

# The wheel's inputs: if one of them is newer, the wheel is rebuilt.
SOURCES := pyproject.toml setup.py README.md LICENSE $(shell find facade emulator wire fixtures lab pipeline \
	-type f \( -name '*.py' -o -name '*.js' -o -name '*.css' -o -name '*.html' -o -name '*.jinja' -o -name '*.json' -o -name '*.pyi' -o -name py.typed \))
# A deleted file only changes its folder's time. `lab` is a target, so its folder is `lab/.`.
FOLDERS := $(shell find facade emulator wire fixtures lab/. pipeline -type d -not -name __pycache__)

# The output of `make demo`, and of `make report`.
DEMO := build/demo
REPORT := build/report

.PHONY: help dev demo report lab test test-all test-slow quick check extras ci-extra tool-test program-test broker-test clients docs docs-site bench bench-lab bench-pipeline spark-test fuzz soak explore suites broken-rules conformance release-check docker-test compose-demo spark-cluster-test clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z -]+:.*## / { printf "make %-36s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/made:
	@python="$(PYTHON)"; \
	if [ -z "$$python" ]; then \
	  for candidate in $(CANDIDATES); do \
	    if "$$candidate" -c '$(SUITABLE)' 2>/dev/null; then python="$$candidate"; break; fi; \
	  done; \
	  [ -n "$$python" ] || { echo "No Python 3.11 to 3.15 with venv found; name one with make PYTHON=..." >&2; exit 1; }; \
	elif ! "$$python" -c '$(SUITABLE)' 2>/dev/null; then \
	  echo "PYTHON=$$python is not Python 3.11 to 3.15 with venv" >&2; exit 1; \
	fi; \
	echo "== creating $(VENV) with $$python ($$("$$python" -c 'import platform; print(platform.python_version())'))"; \
	rm -rf $(VENV); "$$python" -m venv $(VENV)
	@touch $@

# setuptools would include old files from build/lib in the wheel, so remove them first. The rest of build/ stays.
$(VENV)/wheel: $(VENV)/made $(SOURCES) $(FOLDERS)
	@echo "== building the wheel"
	@rm -rf build/lib build/bdist.* koordinator.egg-info $(VENV)/dist
	@$(PIP) wheel --no-deps --wheel-dir $(VENV)/dist .
	@rm -rf build/lib build/bdist.* koordinator.egg-info
	@touch $@

# For the tests that install it elsewhere; without this variable they build one.
THE_WHEEL = KOORDINATOR_WHEEL="$$(echo $(VENV)/dist/*.whl)"

# The tree, editable, with extras of pyproject.toml: `$(VENV)/with-dev`, `$(VENV)/with-spark,engines`. In setuptools'
# strict mode it is a folder of links in build/, which editors and type checkers can follow; a new, moved or deleted
# module changes its folder's time.
, := ,
$(VENV)/with-%: pyproject.toml setup.py $(FOLDERS) | $(VENV)/made
	@echo "== installing the working tree into $(VENV), editable, with the dependencies of [$*] (the first time takes minutes)"
	@rm -rf build/__editable__.*
	@SECONDS=0; $(PIP) install --editable ".[$*]" --config-settings editable_mode=strict || $(NO_WHEELS); \
	echo "== installed in $$SECONDS s"
	@touch $@ $(addprefix $(VENV)/with-,$(subst $(,), ,$*))

dev: $(VENV)/with-dev ## install the working tree into .venv, editable, with the dev dependencies

demo: $(VENV)/with-demo ## restart six real consumers, in a table and on a live page (HOLD=1 keeps it open)
	@KEEP=$(DEMO) $(BIN)/python examples/demo.py

$(DEMO)/seen.json: | $(VENV)/with-demo
	@KEEP=$(DEMO) $(BIN)/python examples/demo.py

report: $(DEMO)/seen.json $(VENV)/with-spark ## run the data pipeline over the demo's trace and write a report page
	@rm -rf $(REPORT)
	@$(BIN)/koordinator-pipeline run --input $(DEMO)/trace.jsonl --output $(REPORT)/store --title "The demo" \
	  --html $(REPORT)/report.html --markdown $(REPORT)/summary.md
	@$(BIN)/python examples/counted.py $(DEMO) $(REPORT)/store $(REPORT)/summary.md

# The page of the laboratory.
LAB := build/lab

lab: $(VENV)/with-dev ## play every rebalance protocol in every situation, write a page, and check the claims
	@mkdir -p $(LAB)
	@$(BIN)/koordinator lab run --html $(LAB)/lab.html --json $(LAB)/lab.json
	@$(BIN)/koordinator lab work
	@$(BIN)/koordinator lab claims

test: check ## check, and run the tests that are not slow (pytest arguments: ARGS)
	@echo "== pytest, without the slow tests"
	@$(BIN)/pytest -n $(JOBS) -m "not slow" $(ARGS)

test-all: test test-slow ## check, and run all tests (pytest arguments: ARGS)

test-slow: $(VENV)/with-dev ## run the slow tests (pytest arguments: ARGS)
	@echo "== pytest, the slow tests"
	@$(PYTEST) -n $(JOBS) -m slow $(ARGS)

quick: $(VENV)/with-dev ## run the tests of a file or folder: make quick T=tests/core/test_timers.py
	@$(BIN)/pytest -q $(T)

check: $(VENV)/with-dev ## run ruff, mypy --strict, import-linter, the prose check, and Biome and TypeScript where there is Node.js
	@echo "== ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@echo "== mypy --strict"
	@$(BIN)/mypy --strict -p koordinator
	@echo "== import-linter"
	@$(BIN)/lint-imports
	@echo "== Biome and TypeScript"
	@tools/js/check.sh
	@echo "== prose"
	@$(BIN)/python tools/prose.py

extras: $(VENV)/with-dev,spark,engines,editors,release docs-site ## install what the tests of `make ci-extra` import, and build the site

ci-extra: extras ## run the tests that need Java, Go, Node.js, Chromium, Docker, MkDocs, pyright, release tools or Spark
	@status=0; \
	$(MAKE) --no-print-directory --keep-going --jobs=2 --output-sync=target tool-test program-test broker-test || status=$$?; \
	$(MAKE) --no-print-directory spark-test || status=$$?; \
	exit $$status

# Tests with programs of other languages, and with Spring's and Streams' applications.
PROGRAMS := tests/languages tests/real_clients tests/suites

tool-test: $(VENV)/wheel $(VENV)/with-dev ## run the tests that need tools, but neither programs, brokers nor Spark (ARGS)
	@$(THE_WHEEL) compose/engine.sh $(PYTEST) -m needs $(addprefix --ignore=,$(PROGRAMS)) --ignore=tests/pipeline --ignore=tests/kafka --ignore=tests/explore $(ARGS)

program-test: $(VENV)/wheel $(VENV)/with-dev ## run the tests that need programs in other languages (ARGS)
	@$(THE_WHEEL) $(PYTEST) -m needs $(PROGRAMS) $(ARGS)

broker-test: $(VENV)/with-dev ## run the tests that need brokers of Apache Kafka (ARGS)
	@$(PYTEST) -m needs tests/kafka tests/explore $(ARGS)

release-check: $(VENV)/with-dev $(VENV)/with-release ## build the release into build/release, with its SBOM; test it in empty environments of every Python
	@KOORDINATOR_REQUIRE=release $(BIN)/pytest -m needs tests/packaging/test_release.py $(ARGS)

# The selection of the tests that need Spark. Those marked slow start many jobs, or a cluster, and take minutes each.
SPARK ?= needs

# JOBS processes, with one Spark each.
spark-test: $(VENV)/wheel $(VENV)/with-dev $(VENV)/with-spark $(VENV)/with-engines ## run the tests that need Spark (ARGS, SPARK="needs and not slow")
	@$(THE_WHEEL) $(PYTEST) -m "$(SPARK)" tests/pipeline -n $(JOBS) --dist loadfile $(ARGS)

spark-cluster-test: $(VENV)/wheel $(VENV)/with-dev $(VENV)/with-spark ## test the pipeline on a local Spark cluster, with spark-submit and Spark Connect
	@KOORDINATOR_REQUIRE=spark $(THE_WHEEL) \
	  $(BIN)/pytest -m needs tests/pipeline/test_beyond_one_machine.py $(ARGS)

# REPLAY=NAME with the same SEED repeats a failed run.
FRAMES ?= 1000000
SEED ?= 1
REPLAY ?=

# The kinds of runs: noise and crowd, on one node; cluster, on three nodes with control operations and failures.
KINDS ?= noise crowd cluster sasl tls

fuzz: $(VENV)/with-dev ## send hostile frames to the broker (FRAMES, SEED, JOBS, KINDS, REPLAY)
	@$(BIN)/python tests/fuzz/run.py --frames $(FRAMES) --seed $(SEED) --jobs $(JOBS) --kinds $(KINDS) --replay "$(REPLAY)"

# The numbers of events that `make bench-pipeline` loads, in order.
TIERS ?= 2M,20M

# Arguments for bench/run.py: BENCH="--only codec --only start".
BENCH ?=

bench-pipeline: $(VENV)/with-engines ## measure the data pipeline on 2M and 20M events, beside DuckDB and Polars (TIERS=100M)
	@PYTHONPATH=tests/support $(BIN)/python bench/pipeline/run.py --tiers $(TIERS)

bench-lab: $(VENV)/with-spark ## measure simulations of the laboratory per second, on one core and on two
	@$(BIN)/python bench/lab.py

bench: $(VENV)/with-dev ## measure speed against targets and other implementations; writes build/bench.json (BENCH="--only codec")
	@$(BIN)/python bench/run.py $(BENCH)

# Arguments for tests/conformance/run.py: CONFORMANCE="--record", "--slow", ...
CONFORMANCE ?=

conformance: $(VENV)/with-dev ## compare every scenario with real Kafka brokers (needs Java 17, Maven)
	@$(BIN)/python tests/conformance/run.py $(CONFORMANCE)
	@if [ -z "$(CONFORMANCE)" ]; then \
	  echo "== group records, decoded by Kafka's own code, and read from Kafka's own logs"; \
	  $(BIN)/pytest -m needs -q tests/kafka/test_offsets_topic.py; \
	fi

# Names of suites: SUITE="tools connect"; all by default.
SUITE ?=

suites: $(VENV)/with-dev ## run Kafka's tools and applications, those of other libraries, and clients (SUITE; needs Java 17, Maven)
	@$(BIN)/python tests/suites/run.py $(addprefix --suite ,$(SUITE))

# The number of random sequences; SEED, above, is the first seed.
SEEDS ?= 200

# What `make explore` plays: OF="assignments migrations streams" for groups of the newer protocols, OF=data for the data
# plane.
OF ?= groups transactions

explore: $(VENV)/with-dev ## compare random request sequences with real Kafka brokers (OF, SEEDS, SEED; needs Java 17, Maven)
	@status=0; \
	for each in $(OF); do $(BIN)/python tests/explore/run.py --seeds $(SEEDS) --first $(SEED) --of $$each || status=$$?; done; \
	exit $$status

broken-rules: $(VENV)/with-dev ## break each hard rule of tests/support/broken, and see its tests fail
	@$(BIN)/python tests/broken_rules/run.py

ENGINE := compose/engine.sh bash -c 'timeout 20 docker info >/dev/null 2>&1 || { \
	echo "no Docker engine found: set DOCKER_HOST, or KOORDINATOR_DOCKER_BOOTSTRAP=1 for a private one (root, Debian)"; \
	exit 2; } >&2; exec "$$@"' engine

docker-test: $(VENV)/with-dev ## test the container images, with the engine of DOCKER_HOST
	@KOORDINATOR_REQUIRE=docker $(ENGINE) $(BIN)/pytest -m needs tests/docker $(ARGS)

compose-demo: $(VENV)/made ## restart one of two static consumers in containers
	@$(ENGINE) compose/demo.sh

docs: $(VENV)/with-dev $(VENV)/with-spark ## regenerate the reference parts of docs/ and the types of koordinator.aio
	@PYTHONPATH=tests/support $(BIN)/python tools/documents.py
	@$(BIN)/python tools/aio_handles.py

clients: $(VENV)/with-dev ## regenerate the control operations of clients/ from the OpenAPI document (types need Node.js)
	@$(BIN)/python tools/client_sources.py
	@tools/js/check.sh types

# MkDocs has an environment of its own: it needs no test dependency, and the tests need no MkDocs.
.venv-docs/made: pyproject.toml | $(VENV)/wheel
	@echo "== installing MkDocs into .venv-docs (once)"
	@rm -rf .venv-docs; $(BIN)/python -m venv .venv-docs
	@.venv-docs/bin/python -m pip --disable-pip-version-check --quiet install "$$(echo $(VENV)/dist/*.whl)[docs]"
	@touch $@

docs-site: .venv-docs/made $(VENV)/wheel ## build the documentation as a site into build/site; it opens and searches offline
	@.venv-docs/bin/python -m pip --disable-pip-version-check --quiet install --force-reinstall --no-deps $(VENV)/dist/*.whl
	@NO_MKDOCS_2_WARNING=1 PATH="$$PWD/.venv-docs/bin:$$PATH" .venv-docs/bin/mkdocs build --quiet --strict
	@echo "build/site/index.html"

# The number of kills, at times drawn from SEED, above; the repetitions of the timing-sensitive tests.
KILLS ?= 100
REPEATS ?= 100

soak: $(VENV)/with-dev ## kill the server while members commit; repeat timing-sensitive tests (KILLS, SEED, REPEATS)
	@$(BIN)/python tests/soak/run.py --kills $(KILLS) --seed $(SEED)
	@echo "== the most timing-sensitive tests, $(REPEATS) times each"
	@grep -v '^#' tests/soak/sensitive.txt | xargs $(BIN)/pytest -q -n $(JOBS) --count=$(REPEATS) $(ARGS)

clean: ## remove .venv and all build outputs and caches
	rm -rf $(VENV) .venv-docs build dist koordinator.egg-info .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache \
	  .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
