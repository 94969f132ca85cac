# `make navigate` and `make test` need nothing but Python 3.10 or newer: they set everything up in .venv first.
PYTHON ?= python3
EPISODES ?= 400
TORCH := torch==2.13.0
PIP := .venv/bin/python -m pip --disable-pip-version-check

.PHONY: navigate test types lint format clean

# The main job: a frozen world model finds its way in rooms it never saw.
navigate: .venv/installed
	.venv/bin/python benchmarks/navigate.py --episodes $(EPISODES)

test: types
	.venv/bin/python -m pytest

# On the package as it is installed, where agents/ is eswm_gym.agents.
types: .venv/installed-test
	rm -rf build
	$(PIP) install --quiet --no-deps --no-build-isolation --target build/types .
	cd build/types && ../../.venv/bin/python -m mypy --config-file ../../setup.cfg -p eswm_gym

lint: .venv/installed-test
	.venv/bin/python -m ruff check
	.venv/bin/python -m ruff format --check

format: .venv/installed-test
	.venv/bin/python -m ruff check --fix
	.venv/bin/python -m ruff format

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

.venv/torch:
	$(PYTHON) -m venv .venv
	$(PIP) install "setuptools>=77" $(TORCH)
	touch $@

.venv/installed: .venv/torch setup.cfg pyproject.toml
	$(PIP) install --no-build-isolation --editable .
	touch $@

.venv/installed-test: .venv/installed
	$(PIP) install --no-build-isolation --editable ".[test]"
	touch $@
