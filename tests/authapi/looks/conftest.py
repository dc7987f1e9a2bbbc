"""A fixture with a login, for tests of pages with the branding of an organization."""

from tests.authapi.login.conftest import login as login
