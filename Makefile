# Two commands for a newcomer: `make try` and `make check`. Both set everything up by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 4
export UV_COMPILE_BYTECODE := 1
export PYTHONDONTWRITEBYTECODE :=

.PHONY: try check setup lint types arrows test branches snapshots pictures bench formal audit sbom docs lock clean

# What the tests need of this machine, said before it is installed. `make SYSTEM_PACKAGES=no check` does without.
SYSTEM_PACKAGES ?= yes
apt-install = DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(1)
# packages, what they are for, and what to install where there are no such packages
define system-packages
if test "$(SYSTEM_PACKAGES)" != yes; then echo "Missing and not installed: $(1). Skipped: $(2)"; else \
  echo "Installing system packages with apt-get: $(1) (for the $(2))"; \
  { apt-get update -qq && { $(call apt-install,$(1)) $(if $(3),|| $(call apt-install,$(3))); }; } > /dev/null 2>&1 \
  || echo "They cannot be installed here; on a Debian system root can do so. Skipped: $(2)"; fi
endef

try: $(VENV)/.ready          ## convene the embedded circle on an example attack: no key, no network
	@$(BIN)/firecircle evaluate --example role_confusion-04-attack || test $$? -eq 1
	@echo; echo "Next: source $(BIN)/activate && firecircle --help"

check: $(VENV)/.ready-dev lint   ## every check and every test; types are checked beside the tests
	@$(MAKE) --no-print-directory --jobs 2 test types arrows audit

setup: $(VENV)/.ready-dev    ## the development environment, nothing else

$(VENV)/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Fire Circle needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	@echo "Creating $(VENV)"; $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(VENV)/.ready: $(VENV)/bin/uv requirements/core.txt pyproject.toml
	@echo "Installing Fire Circle into $(VENV)"
	@test -e $(VENV)/.ready-dev || $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/core.txt
	@test -e $(VENV)/.ready-dev || $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps -e .
	@echo "Fetching the weights of the neural reader (84 MB)"
	@$(BIN)/firecircle local fetch neural > /dev/null || echo "Without them two of three readers judge."
	@touch $@

$(VENV)/.ready-dev: $(VENV)/bin/uv requirements/dev.txt pyproject.toml
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@$(BIN)/firecircle local fetch > /dev/null
	@$(BIN)/firecircle local fetch neural > /dev/null
	@ls /usr/lib/postgresql/*/bin/pg_ctl > /dev/null 2>&1 || command -v pg_ctl > /dev/null \
	  || $(call system-packages,postgresql,tests of the store on PostgreSQL)
	@command -v chromium-headless-shell > /dev/null || command -v chromium > /dev/null || command -v chromium-browser > /dev/null \
	  || command -v google-chrome > /dev/null \
	  || $(call system-packages,chromium-headless-shell fonts-dejavu-core,tests of the viewer in a browser,chromium fonts-dejavu-core)
	@touch $@ $(VENV)/.ready

lint:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types:
	$(BIN)/mypy

arrows:
	$(BIN)/lint-imports

# The lines that no test reached go into a file, so that the last thing printed is which tests failed.
test:
	@$(BIN)/python -m slipcover --out .coverage.txt -m pytest --numprocesses $(WORKERS) --dist worksteal; failed=$$?; \
	awk 'END { print "Coverage: " $$NF "% of " $$2 " lines; those not reached stand in .coverage.txt" }' .coverage.txt; exit $$failed

# In one process: with several, slipcover's branch mode runs no test.
BRANCHES_OF = tests
branches:                       ## tests in one process, with the branches that no test took in .branches.txt; BRANCHES_OF=tests/circle
	@$(BIN)/python -m slipcover --branch --out .branches.txt -m pytest --quiet $(BRANCHES_OF); failed=$$?; \
	awk 'END { printf "Branches: %d of %d taken (%s%%), %s%% of lines and branches; the others are in .branches.txt\n", $$4 - $$5, $$4, $$6, $$7 }' .branches.txt; exit $$failed

SNAPSHOTS = $$(grep -rl --include='test_*.py' inline_snapshot tests)
snapshots: $(VENV)/.ready-dev   ## write what is printed today into the snapshots; read the diff before you commit it
	$(BIN)/python -m pytest --quiet --inline-snapshot=fix $(SNAPSHOTS) || $(BIN)/python -m pytest --quiet $(SNAPSHOTS)

pictures: $(VENV)/.ready-dev  ## draw the pictures of README and viewer anew, from what is really shown
	$(BIN)/python -m docs.pictures
	$(BIN)/python -m docs.viewer_pictures

bench: $(VENV)/.ready-dev    ## every benchmark; prints ratios
	$(BIN)/python -m bench

formal: $(VENV)/.ready-dev   ## check the specification of the circle and show its wrong rules caught; larger with LARGER=--larger
	$(BIN)/python -m formal $(LARGER)

$(VENV)/audit/.ready: $(VENV)/bin/uv requirements/audit.txt
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)/audit
	@$(BIN)/uv pip install --quiet --python $(VENV)/audit --require-hashes -r requirements/audit.txt
	@touch $@

audit: $(VENV)/audit/.ready  ## are pinned versions known to be vulnerable? says so when it cannot tell
	@$(BIN)/python -m security.audit $(VENV)/audit/bin/pip-audit

sbom: $(VENV)/audit/.ready   ## what an installation consists of, as CycloneDX: sbom.cdx.json
	@PYTHONWARNINGS=ignore $(VENV)/audit/bin/cyclonedx-py requirements requirements/core.txt --pyproject pyproject.toml --output-reproducible --of JSON -o sbom.cdx.json
	@echo "Written: sbom.cdx.json"

docs: $(VENV)/.ready-dev     ## the site, from docs/ and the code: open docs/_build/index.html
	$(BIN)/sphinx-build --quiet --fail-on-warning --builder html docs docs/_build
	@echo "Open docs/_build/index.html"

lock: $(VENV)/bin/uv         ## refresh the pinned versions
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --python-version 3.11 pyproject.toml -o requirements/core.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --python-version 3.11 pyproject.toml --group dev --extra inspect --extra lab --extra local --extra mcp --extra otel --extra postgres --extra ray --extra view -o requirements/dev.txt
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --no-annotate --python-version 3.11 --group audit -o requirements/audit.txt

clean:
	rm -rf $(VENV) docs/_build docs/reference .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.* .branches.txt
