# Each verb is thin over a program that says what it does and what failed. `make help` lists them.
.DEFAULT_GOAL := help
PY := .venv/bin/python
export PYTHONDONTWRITEBYTECODE ?= 1

.PHONY: help setup demo test check crds chart images image-list cluster cluster-down cluster-status bench e2e clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: .venv/.ready ## a virtual environment from the lock

.venv/.ready: locks/dev.txt pyproject.toml dev/setup.sh
	@sh dev/setup.sh

crds: setup ## generate crds/ and the chart's copy from the models
	@$(PY) -m sandyard_api.crdgen

clean: ## remove what builds left in the checkout
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build dist
