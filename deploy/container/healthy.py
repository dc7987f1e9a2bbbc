"""Health check of the container's web process. Any status below 500 is healthy."""

from __future__ import annotations

import http.client
import os
import sys


def main() -> int:
    connection = http.client.HTTPConnection("127.0.0.1", int(os.environ.get("PORT", "8000")), timeout=4)
    try:
        # The request goes directly to the process, without TLS and proxy. The service looks up the host in the database and answers with a
        # redirect to https, so the check covers the database, too.
        connection.request("GET", "/", headers={"Host": os.environ.get("PLATFORM_HOST", "localhost")})
        return 0 if connection.getresponse().status < 500 else 1
    except (OSError, http.client.HTTPException):
        return 1
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
