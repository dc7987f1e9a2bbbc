"""Settings of the test suite: fixed keys, a prefix per test worker, background threads off unless a test starts them."""

from __future__ import annotations

import os

_CONTROLLER = "test-main"
if os.environ.get("REDIS_PREFIX") == _CONTROLLER:
    # A test worker inherits the environment of the process that started it. With one prefix for all workers, a test that empties Redis
    # would disturb the other workers.
    del os.environ["REDIS_PREFIX"]
_worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
for _name, _value in {
    "SESSION_KEYS": "t1:session-key-for-tests-only-0123456789",
    "ENCRYPTION_KEYS": "t1:encryption-key-for-tests-only-0123456789",
    "DIGEST_KEYS": "t1:digest-key-for-tests-only-0123456789",
    "CURSOR_KEYS": "t1:cursor-key-for-tests-only-0123456789",
    "INSECURE_HTTP": "1",
    "DATABASE_POOL": "0",
    "EVENTS_NUMBERER_ENABLED": "0",
    "EVENTS_SWEEPER_ENABLED": "0",
    "DELIVERY_NUDGES_ENABLED": "0",
    "OUTBOUND_ALLOW_HTTP": "1",
    "OUTBOUND_PRIVATE_NETWORKS": "127.0.0.0/8,::1/128",
    "EMAIL_URL": "console:",
    "STAFF_SECOND_FACTOR": "off",
    "REDIS_PREFIX": f"test-{_worker}",
    # On a loaded machine Redis can be slow. With a shorter timeout, the service would stop using Redis, and its answers would change.
    "REDIS_TIMEOUT_SECONDS": "5",
}.items():
    os.environ.setdefault(_name, _value)

from config.settings.base import *  # noqa: E402, F403  (the variables above must be set first)
from tests.composed_keys import replace_generation  # noqa: E402

replace_generation()

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher", "identity.hashers.ImportedPasswordHasher"]
# `foundation.failpoints` kills the process at a step if a test has created a file with the name of this step in the directory.
FAILPOINTS_DIR = os.environ.get("FAILPOINTS_DIR", "")
CHECK_DATABASE_STRATEGY = False
