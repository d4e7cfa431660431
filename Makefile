# Two commands for a newcomer: `make try` and `make check`. Both set everything up by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export UV_COMPILE_BYTECODE := 1
export PYTHONDONTWRITEBYTECODE :=

.PHONY: try check setup lint types arrows test bench lock clean

try: $(VENV)/.ready          ## convene the embedded circle on an example attack: no key, no network
	@$(BIN)/firecircle evaluate --example role_confusion-04-attack || test $$? -eq 1

check: $(VENV)/.ready-dev lint types arrows test   ## every check and every test

setup: $(VENV)/.ready-dev    ## the development environment, nothing else

$(VENV)/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Fire Circle needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	@echo "Creating $(VENV)"; $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(VENV)/.ready: $(VENV)/bin/uv requirements/core.txt pyproject.toml
	@test -e $(VENV)/.ready-dev || $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/core.txt
	@test -e $(VENV)/.ready-dev || $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -e .
	@touch $@

$(VENV)/.ready-dev: $(VENV)/bin/uv requirements/dev.txt pyproject.toml
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@$(BIN)/firecircle local fetch > /dev/null
	@$(BIN)/firecircle local fetch neural > /dev/null
	@ls /usr/lib/postgresql/*/bin/pg_ctl > /dev/null 2>&1 || command -v pg_ctl > /dev/null \
	  || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql; } > /dev/null 2>&1 \
	  || echo "PostgreSQL cannot be installed here: its tests will be skipped"
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null \
	  || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } > /dev/null 2>&1 \
	  || echo "No browser can be installed here: the viewer's browser tests will be skipped"
	@touch $@ $(VENV)/.ready

lint:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types:
	$(BIN)/mypy

arrows:
	$(BIN)/lint-imports

test:
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage report

bench: $(VENV)/.ready-dev    ## every benchmark; prints ratios
	$(BIN)/python -m bench

lock: $(VENV)/bin/uv         ## refresh the pinned versions
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --python-version 3.11 pyproject.toml -o requirements/core.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --python-version 3.11 pyproject.toml --group dev --extra lab --extra local --extra neural --extra postgres --extra view -o requirements/dev.txt

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
