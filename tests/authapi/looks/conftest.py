"""Logins, for pages with the branding of an organization."""

from tests.authapi.login.conftest import login as login
