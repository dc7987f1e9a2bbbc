"""Runs unmodified Canaille with its SCIM server enabled. This file sets up its database, its token and its port.

Run as `serve.py PORT FOLDER` in a separate Python environment. The environment variable SCIM_TOKEN contains the bearer token. The
database is a file in the folder.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from canaille import create_app
from canaille.app import models
from canaille.backends import Backend


def main(port: str, folder: str) -> None:
    """Create the database with one client and its token, and serve until the process ends."""
    application = create_app(
        {
            "SECRET_KEY": "of no use",
            "SERVER_NAME": f"127.0.0.1:{port}",
            "PREFERRED_URL_SCHEME": "http",
            "CANAILLE_SQL": {"DATABASE_URI": f"sqlite:///{Path(folder).resolve()}/canaille.sqlite"},
            "CANAILLE_SCIM": {"ENABLE_SERVER": True},
            "CANAILLE_OIDC": {},
        }
    )
    with application.app_context():
        Backend.instance.install(application)
        with Backend.instance.session():
            admit(os.environ["SCIM_TOKEN"])
    application.run("127.0.0.1", int(port), threaded=True)


def admit(token: str) -> None:
    """Register the token of a client, as `canaille create token` does."""
    now = datetime.now(UTC)
    client = models.Client(client_id="peers", client_name="peers", client_uri="http://127.0.0.1/", scope=["openid"])
    Backend.instance.save(client)
    lifetime = int(timedelta(days=1).total_seconds())
    fields = {"token_id": "peers", "access_token": token, "type": "access_token", "issue_date": now, "lifetime": lifetime}
    Backend.instance.save(models.Token(client=client, scope=["openid"], **fields))


if __name__ == "__main__":
    main(*sys.argv[1:])
