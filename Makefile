# Two commands on a fresh machine: make demo, make test. All of them make and reuse .venv.
.DEFAULT_GOAL := help
.PHONY: help demo up test properties test-kafka test-slow kafka-available check format lint types imports bench clean

BIN := .venv/bin

help: ## what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

demo: ## a real retrieval service, audited, to the headline table
	@.ci/setup demo
	@$(BIN)/lookup-audit demo

up: ## serve the demo's data (or an empty stack) on http://127.0.0.1:4318
	@.ci/setup demo
	@$(BIN)/lookup-audit up

test: ## the default suite: no network, no Docker (12 minutes on two cores)
	@.ci/setup demo dev
	@$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile -m "not apache_kafka and not slow" $(ARGS)

test-slow: ## the long fault tests
	@.ci/setup demo dev
	@$(BIN)/python -m pytest -m slow $(ARGS)

properties: ## the property tests, with examples never drawn before
	@.ci/setup demo dev
	@$(BIN)/python -m pytest -m "hypothesis and not apache_kafka" --hypothesis-profile default $(ARGS)

test-kafka: ## the suite's Kafka tests on a real Apache Kafka (needs java and mvn)
	@.ci/setup demo dev
	@$(BIN)/python -m pytest -m "apache_kafka and not slow" $(ARGS)

kafka-available:
	@.ci/setup demo dev
	@$(BIN)/python -m tests.support.apache_kafka

check: lint types imports ## format, lint, types and import rules

format: ## rewrite the sources in the house style
	@.ci/setup demo dev
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

lint:
	@.ci/setup demo dev
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check

types:
	@.ci/setup demo dev
	@$(BIN)/mypy

imports:
	@.ci/setup demo dev
	@$(BIN)/lint-imports

bench: ## the measured table of the architecture's numbers
	@.ci/setup demo bench
	@$(BIN)/python -m tests.bench $(ARGS)

clean: ## remove what was made
	rm -rf .venv .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
