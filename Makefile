# All commands of the project; `make help` lists them. A new checkout needs only Python 3.11 and make.

PYTHON ?= python3.11
PY := .venv/bin/python
BOOTSTRAP := @command -v $(firstword $(PYTHON)) >/dev/null 2>&1 || { \
  echo "Python 3.11 is needed, and $(PYTHON) was not found: install it, or name it with PYTHON=/path/to/python3.11." >&2; exit 1; }; \
  $(PYTHON) -c 'import sys; sys.exit(sys.version_info[0] < 3)' >/dev/null 2>&1 || { \
  echo "Python 3.11 is needed, and $(PYTHON) does not start Python 3: install it, or name it with PYTHON=/path/to/python3.11." >&2; exit 1; }; \
  $(PYTHON) config/launcher/bootstrap.py
LAUNCHER := @exec $(PY) -m config.launcher
# A key that only makes the production settings load. It signs and encrypts nothing.
CHECK_KEY := check:only-to-load-the-production-settings-0123456789-ABCDEFGHIJKLMNOPQRSTUV

# A test run starts hundreds of processes. Without bytecode on disk, each would compile Django again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help describe messages docs up down reset scim-stop scim-start run worker test test-peers peers test-faults test-cluster test-cluster-core test-mutants test-seeded-mutants test-mutation soak bench bench-stream bench-auth check static lint format types contracts migrations deploy-check lock embedded dev

help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk 'BEGIN {FS = ":.*## "} {printf "  %-19s %s\n", $$1, $$2}'

up: embedded ## Start everything and check that it works: PORT=8000, DETACH=1, TLS=1, DATABASE_URL and REDIS_URL are honored
	$(LAUNCHER) up

down: embedded ## Stop what `make up` started
	$(LAUNCHER) down

reset: embedded ## Delete .data with all its content, after a confirmation (none with YES=1); never changes an external server
	$(LAUNCHER) reset

scim-stop: embedded ## Stop only the downstream SCIM server, to see retries and dead letters
	$(LAUNCHER) scim-stop

scim-start: embedded ## Start the downstream SCIM server again
	$(LAUNCHER) scim-start

run: embedded ## Run Django's development server on port 8001, while `make up` runs
	@exec $(PY) manage.py runserver 127.0.0.1:8001

worker: embedded ## Run another worker, while `make up` runs
	@DJANGO_SETTINGS_MODULE=config.settings.development exec $(PY) -m celery -A config worker --concurrency 2 --loglevel INFO

test: dev ## Run the tests, in parallel, on private servers, or on the servers in DATABASE_URL and REDIS_URL
	@$(PY) -m pytest -n 3 -q --ignore=tests/peers -m "not fault and not deep" --turn=$(or $(TURN),8) --durations=10

test-deep: peers ## Run all cases of the tests that `make test` and `make test-peers` shorten, and the tests that take minutes
	@TEST_DEPTH=deep $(PY) -m pytest -n 2 -q -m "(deep or sized) and not fault" --durations=10
	@TEST_SERVERS_DURABLE=1 FAULT_ROUNDS=$(or $(ROUNDS),200) $(PY) -m pytest -q tests/faults/test_stream_processes.py -k random_kills

test-peers: peers ## Run the tests against third-party programs; installs the programs
	@CONFORMANCE_SERVERS="uvicorn-2 nginx" $(PY) -m pytest -n 2 -q -m "not deep" tests/peers tests/conformance -k "peers or uvicorn-2 or nginx" --durations=10

peers: dev ## Install the programs for `make test-peers`
	@$(PY) -m config.launcher.peers

test-faults: dev ## Run the tests that kill, freeze and cut off servers: FAULT_MINUTES=5, FAULT_ROUNDS=3 random kills, FAULT_SEED repeats
	@TEST_SERVERS_DURABLE=1 $(PY) -m pytest -q tests/faults --durations=10

test-cluster: peers ## Run the tests on clusters of PostgreSQL and Redis whose servers are killed, frozen and cut off
	@$(PY) -m pytest -q tests/cluster --durations=10
	@CONFORMANCE_SERVERS=pgbouncer $(PY) -m pytest -q -m "not deep" tests/conformance -k pgbouncer

test-cluster-core: peers ## Run the shortest tests on clusters: kill of the PostgreSQL primary, kill of the Redis master, poolers
	@$(PY) -m pytest -n 3 -q -m core tests/cluster --durations=10

test-mutants: dev ## Plant named faults in a copy of the source and check that tests fail: ONLY='events-*', OPTIONS=--help
	@$(PY) -W ignore -m tests.mutants $(if $(ONLY),--only '$(ONLY)') $(OPTIONS)

test-seeded-mutants: dev ## Plant random mutants in the log, deliveries and tokens, and print the seed: ONLY='log lanes', SEED=1, COUNT=40
	@$(PY) -u -W ignore -m tests.mutants.seeded $(ONLY) $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT)) $(OPTIONS)

test-mutation: dev ## Plant every mutant of the pure modules, which takes hours: ONLY='foundation.*', COUNT=20 of each module, SEED=1
	@$(PY) -u -W ignore -m tests.mutants.pure $(if $(ONLY),--only '$(ONLY)') $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT)) $(OPTIONS)

test-outage: dev ## Stop a SCIM server for ten real minutes while 1,000 users change: SECONDS=600
	@OUTAGE_SECONDS=$(or $(SECONDS),600) $(PY) -m pytest -q -s tests/faults/test_provisioning_outage.py

soak: dev ## Keep streams open through one fault per minute and check for growth: MINUTES=30
	@DJANGO_SETTINGS_MODULE=config.settings.test $(PY) -m benchmarks.soak --minutes $(or $(MINUTES),30)

bench: dev ## Measure the figures of the service on this machine
	@exec $(PY) -m benchmarks

bench-stream: dev ## Compare the event stream with other servers, and write docs/performance.md; OPTIONS=--quick writes nothing
	@exec $(PY) -m benchmarks.stream $(or $(OPTIONS),--document)

bench-auth: dev ## Compare token requests with npm oidc-provider, and write docs/performance.md
	@$(PY) -m config.launcher.peers
	@exec $(PY) -m benchmarks auth --document

bench-provisioning: dev ## Measure deliveries, recovery, memory and lists, and write docs/performance.md; OPTIONS=--quick writes nothing
	@exec $(PY) -m benchmarks.provisioning $(or $(OPTIONS),--document)

bench-scale: dev ## Measure how costs grow with tenants, log, streams and web processes, and write docs/performance.md; OPTIONS=--quick writes nothing
	@exec $(PY) -m benchmarks.scale $(or $(OPTIONS),--document)

check: static test ## Run all checks: lint, types, contracts, migrations, settings, tests

static: types lint contracts migrations deploy-check ## Run all checks except tests; -j2 uses two cores

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

contracts: dev ## Check the import rules, such as layers and pure files
	@.venv/bin/lint-imports

migrations: dev ## Check that no migration is missing, that new ones block and break nothing, and that the schema dump matches them
	@DJANGO_SETTINGS_MODULE=config.settings.test $(PY) -W ignore manage.py makemigrations --check --dry-run
	@$(PY) -W ignore -m config.schema.judging
	@$(PY) -W ignore -m config.schema --check

schema: dev ## Write config/schema/schema.sql, the start of a new database; run after changes of migrations or requirements
	@$(PY) -W ignore -m config.schema

deploy-check: dev ## Check the production settings
	@SESSION_KEYS=$(CHECK_KEY) ENCRYPTION_KEYS=$(CHECK_KEY) DIGEST_KEYS=$(CHECK_KEY) CURSOR_KEYS=$(CHECK_KEY) \
	  DJANGO_SETTINGS_MODULE=config.settings.production $(PY) manage.py check --deploy --fail-level WARNING

docs: dev ## Build the manual in .manual/html, with warnings as errors, and check every link
	@$(PY) -m config.launcher.manual

describe: dev ## Generate the reference of the manual from the code into docs/reference
	@DJANGO_SETTINGS_MODULE=config.settings.test $(PY) manage.py describe

messages: dev ## Update the catalogues of all languages with the texts of pages, mails and messages, and compile them
	@$(PY) -m config.catalogues

lock: dev ## Compile requirements/*.in into locks with hashes and without index URLs
	@for name in bootstrap base tracing embedded dev docs mutation; do \
	  .venv/tools/bin/uv pip compile --quiet --upgrade --generate-hashes --no-header --no-annotate --universal --python-version 3.11 \
	    requirements/$$name.in --output-file requirements/$$name.lock || exit 1; done
	@! grep -nE 'https?://|index|find-links|file:' requirements/*.lock

embedded:
	$(BOOTSTRAP) embedded

dev:
	$(BOOTSTRAP) dev
