# Every command of the project; `make help` lists them. Only Python 3.11 and make are needed to begin.

PYTHON ?= python3.11
PY := .venv/bin/python
BOOTSTRAP := @$(PYTHON) config/launcher/bootstrap.py
LAUNCHER := @exec $(PY) -m config.launcher
# Values that only let the production settings load; nothing is signed or encrypted with them.
CHECK_KEY := check:only-to-load-the-production-settings-0123456789-ABCDEFGHIJKLMNOPQRSTUV

# Without bytecode on disk every process that starts, and a run starts hundreds, first compiles Django and all the rest again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help describe messages docs up down reset scim-stop scim-start run worker test test-peers peers test-faults test-mutants soak bench bench-stream bench-auth check static lint format types contracts migrations deploy-check lock embedded dev

help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk 'BEGIN {FS = ":.*## "} {printf "  %-14s %s\n", $$1, $$2}'

up: embedded ## Start everything and prove it: PORT=8000, DETACH=1, TLS=1, DATABASE_URL and REDIS_URL are honored
	$(LAUNCHER) up

down: embedded ## Stop what `make up` started
	$(LAUNCHER) down

reset: embedded ## Remove .data with everything in it; asks first unless YES=1; never touches an outside server
	$(LAUNCHER) reset

scim-stop: embedded ## Stop the downstream SCIM server alone, to see retries and dead letters
	$(LAUNCHER) scim-stop

scim-start: embedded ## Start the downstream SCIM server again
	$(LAUNCHER) scim-start

run: embedded ## Run Django's development server beside a running `make up`, on port 8001
	@exec $(PY) manage.py runserver 127.0.0.1:8001

worker: embedded ## Run one more worker beside a running `make up`
	@DJANGO_SETTINGS_MODULE=config.settings.development exec $(PY) -m celery -A config worker --concurrency 2 --loglevel INFO

test: dev ## Run the tests, in parallel, on private servers unless DATABASE_URL and REDIS_URL are set
	@$(PY) -m pytest -n 3 -q --ignore=tests/peers -m "not fault and not deep" --turn=$(or $(TURN),8) --durations=10

test-deep: peers ## Run in full what `make test` and `make test-peers` take samples of, and what takes minutes
	@TEST_DEPTH=deep $(PY) -m pytest -n 2 -q -m "(deep or sized) and not fault" --durations=10

test-peers: peers ## Run the tests against programs of other makers; installs what they need
	@CONFORMANCE_SERVERS="uvicorn-2 nginx" $(PY) -m pytest -n 2 -q -m "not deep" tests/peers tests/conformance -k "peers or uvicorn-2 or nginx" --durations=10

peers: dev ## Install what `make test-peers` needs
	@$(PY) -m config.launcher.peers

test-faults: dev ## Run the tests that kill, freeze and cut off servers: FAULT_ROUNDS=3 random kills, FAULT_SEED repeats a run
	@$(PY) -m pytest -q tests/faults

test-mutants: dev ## Plant named faults in a copy of the source, and see the tests near each fail: ONLY='events-*', OPTIONS=--help
	@$(PY) -W ignore -m tests.mutants $(if $(ONLY),--only '$(ONLY)') $(OPTIONS)

test-outage: dev ## Let a SCIM server be away for ten true minutes while 1,000 users change: SECONDS=600
	@OUTAGE_SECONDS=$(or $(SECONDS),600) $(PY) -m pytest -q -s tests/faults/test_provisioning_outage.py

soak: dev ## Let streams live through a fault a minute and judge what grows: MINUTES=30
	@DJANGO_SETTINGS_MODULE=config.settings.test $(PY) -m benchmarks.soak --minutes $(or $(MINUTES),30)

bench: dev ## Measure the figures of the service on this machine
	@exec $(PY) -m benchmarks

bench-stream: dev ## Measure the event stream beside its peers, into docs/performance.md; OPTIONS=--quick only tries it out
	@exec $(PY) -m benchmarks.stream $(or $(OPTIONS),--document)

bench-auth: dev ## Measure tokens beside npm oidc-provider, into docs/performance.md
	@$(PY) -m config.launcher.peers
	@exec $(PY) -m benchmarks auth --document

bench-provisioning: dev ## Measure deliveries beside a bare loop, recovery, memory and lists, into docs/performance.md; OPTIONS=--quick only tries it out
	@exec $(PY) -m benchmarks.provisioning $(or $(OPTIONS),--document)

check: static test ## Everything that must pass: lint, types, contracts, migrations, settings, tests

static: types lint contracts migrations deploy-check ## Everything that must pass and runs no test; -j2 takes two cores

lint: dev ## Check format, style, templates, spelling, plain English and security of the source
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@if find . -path ./.venv -prune -o -path ./.peers -prune -o -name '*.html' -print | grep -q .; then .venv/bin/djlint templates --lint --quiet; fi
	@.venv/bin/codespell
	@$(PY) -m config.plain_english
	@.venv/bin/bandit --quiet --recursive --configfile pyproject.toml foundation identity authapi events provisioning config

format: dev ## Rewrite the source in the house format
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

types: dev ## Check types, strictly
	@$(PY) -m mypy .

contracts: dev ## Check that imports run one way and pure files stay pure
	@.venv/bin/lint-imports

migrations: dev ## Check that no migration is missing, and that the dump of the schema is what the migrations make
	@DJANGO_SETTINGS_MODULE=config.settings.test $(PY) -W ignore manage.py makemigrations --check --dry-run
	@$(PY) -W ignore -m config.schema --check

schema: dev ## Write config/schema/schema.sql, from which a new database starts: after every change of a migration or of requirements
	@$(PY) -W ignore -m config.schema

deploy-check: dev ## Check the production settings
	@SESSION_KEYS=$(CHECK_KEY) ENCRYPTION_KEYS=$(CHECK_KEY) DIGEST_KEYS=$(CHECK_KEY) CURSOR_KEYS=$(CHECK_KEY) \
	  DJANGO_SETTINGS_MODULE=config.settings.production $(PY) manage.py check --deploy --fail-level WARNING

docs: dev ## Build the manual into .manual/html, with warnings as errors and every link followed
	@$(PY) -m config.launcher.manual

describe: dev ## Write the reference of the manual from the code into docs/reference
	@DJANGO_SETTINGS_MODULE=config.settings.test $(PY) manage.py describe

messages: dev ## Take the texts of pages, mails and messages into the catalogues of every language, and compile them
	@$(PY) -m config.catalogues

lock: dev ## Compile requirements/*.in into locks with hashes and without hosts
	@for name in bootstrap base embedded dev docs; do \
	  .venv/tools/bin/uv pip compile --quiet --upgrade --generate-hashes --no-header --no-annotate --universal --python-version 3.11 \
	    requirements/$$name.in --output-file requirements/$$name.lock || exit 1; done
	@! grep -nE 'https?://|index|find-links|file:' requirements/*.lock

embedded:
	$(BOOTSTRAP) embedded

dev:
	$(BOOTSTRAP) dev
