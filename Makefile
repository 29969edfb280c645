# Each verb is thin over a program that says what it does and what failed. `make help` lists them.
.DEFAULT_GOAL := help
PY := .venv/bin/python
export PYTHONDONTWRITEBYTECODE ?= 1

.PHONY: docs help setup demo test check crds chart images image-list image-archives image-locks push cluster cluster-down cluster-status kubeconfig load-image deploy bench e2e clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: .venv/.ready ## a virtual environment from the lock

.venv/.ready: locks/dev.txt pyproject.toml dev/setup.sh
	@sh dev/setup.sh

crds: setup ## generate crds/ and the chart's copy from the models
	@$(PY) -m sandyard_api.crdgen

demo: setup ## everything up, then the examples with a live view
	@PYTHONPATH=dev $(PY) -m yard.demo

test: setup ## everything up, then all tests
	@PYTHONPATH=dev $(PY) -m yard.suite

check: setup ## style, types, import rules, unit tests: no cluster needed
	@PYTHONPATH=dev $(PY) -m yard.check

chart: setup ## lint the chart with every known set of values and package it into dist/
	@PYTHONPATH=dev $(PY) -m yard.chart

NODE := PYTHONPATH=dev/node $(PY) -m sandyard_node

cluster: setup ## a real Kubernetes: kind where Docker and kind work, else a node of our own
	@$(NODE) up

cluster-down: setup ## stop it; built programs and images stay
	@$(NODE) down

cluster-status: setup ## what runs and where, as JSON
	@$(NODE) status

kubeconfig: setup ## print where the cluster's kubeconfig is
	@$(NODE) kubeconfig

load-image: setup ## import archives into every node: make load-image ARCHIVE=...
	@$(NODE) load-image $(ARCHIVE)

IMAGES := PYTHONPATH=dev $(PY) -m images

images: setup ## build what changed, load it into the cluster that is up; REFRESH=1 takes in Debian's updates
	@$(IMAGES) build $(if $(REFRESH),--refresh)

image-list: setup ## the images last built, by tag and by digest
	@$(IMAGES) list

image-archives: setup ## write each image as an archive for machines without a network: make image-archives TO=dist
	@$(IMAGES) archive $(or $(TO),dist/images)

image-locks: setup ## resolve the images' packages into locks/; UPGRADE=1 takes newer versions
	@$(IMAGES) lock $(if $(UPGRADE),--upgrade)

push: setup ## copy the images to a registry: make images push REGISTRY=registry.example/sandyard
	@$(IMAGES) push $(or $(REGISTRY),$(error say where to, as in: make push REGISTRY=registry.example/sandyard))

deploy: setup ## the private index and the chart into the cluster that is up
	@PYTHONPATH=dev $(PY) -m yard.bring_up deploy

e2e: setup ## the end-to-end set against any cluster: make e2e KUBECONFIG=...
	@$(PY) -m pytest -q tests/e2e

bench: setup ## a cold task beside a Job, interleaved; writes bench/
	@PYTHONPATH=tests:dev $(PY) tests/bench/cold_task.py

docs: setup ## generate the reference pages from the models
	@PYTHONPATH=dev $(PY) -m yard.reference

clean: ## remove what builds left in the checkout
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build dist
