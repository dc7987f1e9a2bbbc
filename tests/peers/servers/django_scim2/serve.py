"""Runs a SCIM server built with unmodified django-scim2. This file sets up its storage, its token and its port.

Run as `serve.py PORT FOLDER` in a separate Python environment. The environment variable SCIM_TOKEN contains the bearer token. The
database is a file in the folder.
"""

from __future__ import annotations

import sys
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command


def main(port: str, folder: str) -> None:
    """Create the tables and serve until the process ends."""
    settings.configure(
        SECRET_KEY="of no use",
        ALLOWED_HOSTS=["127.0.0.1"],
        ROOT_URLCONF="directory.scim",
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": Path(folder) / "users.sqlite3", "OPTIONS": {"timeout": 20}}},
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "directory"],
        MIGRATION_MODULES={"auth": None, "contenttypes": None, "directory": None},
        AUTH_USER_MODEL="directory.User",
        MIDDLEWARE=["directory.scim.BearerMiddleware", "django_scim.middleware.SCIMAuthCheckMiddleware"],
        SCIM_SERVICE_PROVIDER={
            "SCHEME": "http",
            "NETLOC": f"127.0.0.1:{port}",
            "GROUP_MODEL": "directory.models.Group",
            "USER_FILTER_PARSER": "directory.filters.UserFilter",
        },
    )
    django.setup()
    call_command("migrate", run_syncdb=True, verbosity=0)
    call_command("runserver", f"127.0.0.1:{port}", use_reloader=False, skip_checks=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
