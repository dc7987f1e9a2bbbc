"""Logins, for pages that have the looks of an organization."""

from tests.authapi.login.conftest import login as login
