# `make navigate` and `make test` need nothing but Python 3.10 or newer: they set everything up in .venv first.
PYTHON ?= python3
EPISODES ?= 400
TORCH := torch==2.13.0
WORKERS := --numprocesses logical --maxprocesses 4 --dist worksteal
PIP := .venv/bin/python -m pip --disable-pip-version-check

.PHONY: navigate test types lint format docs coverage oldest dist sbom audit clean

# The main job: a frozen world model finds its way in rooms it never saw.
navigate: .venv/installed
	.venv/bin/python benchmarks/navigate.py --episodes $(EPISODES)

test: types
	.venv/bin/python -m pytest $(WORKERS)

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

# In build/site.
docs: .venv/installed-test
	NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --strict

# The whole suite less what is slow; fails under 90 % of lines.
coverage: .venv/installed-test
	.venv/bin/python -m pytest $(WORKERS) --cov --cov-report=term:skip-covered --cov-fail-under=90

# Environments, wrappers, agents and examples with the oldest versions that setup.cfg allows, PyTorch aside.
oldest: build/oldest/installed
	build/oldest/bin/python -m pytest tests/envs tests/wrappers tests/agents tests/examples

# sdist and wheel of the last commit, built twice with the same bytes; the wheel is installed where nothing else is, and
# tried out in another folder.
dist: .venv/installed-dev
	rm -rf build/try
	.venv/bin/python .ci/dist.py
	.venv/bin/python -m twine check --strict dist/*
	$(PYTHON) -m venv build/try
	build/try/bin/python -m pip --disable-pip-version-check install --quiet $(TORCH)
	build/try/bin/python -m pip --disable-pip-version-check install --quiet dist/*.whl
	cp examples/quickstart.py build/try
	cd build/try && bin/python quickstart.py
	cd build/try && bin/python -m pip check

# What an installation of the wheel holds, as CycloneDX, in build/sbom.json. Installed from a folder, the wheel is a
# package of that name and version; installed as a file, it would be a path of this machine.
sbom: dist
	build/try/bin/python -m pip --disable-pip-version-check install --quiet --no-index --no-deps --force-reinstall \
		--find-links dist eswm-gym
	.venv/bin/python -m cyclonedx_py environment --output-reproducible --output-file build/sbom.json build/try/bin/python

# Whether a weakness is known of anything that an installation of the wheel holds. Asks a service on the network, and
# lists what that does not know.
audit: dist
	PIPAPI_PYTHON_LOCATION=build/try/bin/python .venv/bin/python -m pip_audit

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

.venv/installed-dev: .venv/installed-test
	$(PIP) install --no-build-isolation --editable ".[dev]"
	touch $@

# `name>=1.2,<3` becomes `name==1.2.*`, and `name>=3` becomes `name==3.0.*`.
build/oldest/installed: setup.cfg
	rm -rf build/oldest
	$(PYTHON) -m venv build/oldest
	sed -nE 's/^    ([a-z0-9-]+)>=([0-9]+)(,.*)?$$/\1==\2.0.*/p; s/^    ([a-z0-9-]+)>=([0-9.]+\.[0-9]+)(,.*)?$$/\1==\2.*/p' \
		setup.cfg | grep -v '^torch==' > build/oldest/constraints.txt
	build/oldest/bin/python -m pip --disable-pip-version-check install "setuptools>=77" $(TORCH)
	build/oldest/bin/python -m pip --disable-pip-version-check install --no-build-isolation \
		--constraint build/oldest/constraints.txt --editable ".[train,plot]" hypothesis pytest sb3-contrib
	touch $@
