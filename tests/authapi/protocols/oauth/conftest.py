"""The fixtures of a login: a tenant with one client, one database and one user, and a browser."""

from tests.authapi.login.conftest import login as login
