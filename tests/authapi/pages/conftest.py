"""The fixtures of signing in, for the pages."""

from __future__ import annotations

from tests.authapi.accounts.conftest import _fresh_memory  # noqa: F401  (a fixture here, too)
from tests.authapi.login.conftest import login  # noqa: F401  (a fixture here, too)
