"""Reuses the fixtures of login tests in the tests of pages."""

from __future__ import annotations

from tests.authapi.accounts.conftest import _fresh_memory  # noqa: F401  (this fixture is used here, too)
from tests.authapi.login.conftest import login  # noqa: F401  (this fixture is used here, too)
