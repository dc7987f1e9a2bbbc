"""`manage.py events token`: print an access token, for commands in a shell."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser, OutputWrapper

from events.client.credentials import masked
from events.client.failures import Remedy, StreamError, Untrusted, printable
from events.client.options import CREDENTIAL_SOURCES, InvalidOptions, access_of, add_access_arguments

UNUSABLE, REFUSED, UNREACHABLE = 2, 3, 5

HELP = f"""Print an access token of a client for the management interface and the event stream.

Standard output contains the token and nothing else. A token is a secret until it expires: do not print it where other
users can read it.

Examples
  TOKEN=$(manage.py events token)                           the client that `make up` has created here
  manage.py events token https://id.example.com --client-id ID --client-secret-file FILE

{CREDENTIAL_SOURCES}

Exit status
  0    the token is in the output
  2    the command line is invalid
  3    the service refused the credentials
  5    no connection, or a certificate that does not verify"""


def add_arguments(parser: CommandParser) -> None:
    add_access_arguments(parser)


def handle(options: Mapping[str, Any], stdout: OutputWrapper, stderr: OutputWrapper) -> int:
    if options["dpop"]:
        raise CommandError(
            "With --dpop, the token would be bound to a key that this command does not store. Use --dpop-key-file.", returncode=UNUSABLE
        )
    try:
        access = access_of(options, os.environ, settings.DATA_DIR / "up.json")
    except InvalidOptions as error:
        raise CommandError(str(error), returncode=UNUSABLE) from error
    except StreamError as error:
        raise CommandError(str(error), returncode=UNREACHABLE) from error
    try:
        token = access.credentials.token()
    except StreamError as error:
        is_unreachable = isinstance(error, Untrusted) or error.remedy is Remedy.WAIT
        raise CommandError(
            printable(masked(str(error), access.credentials)), returncode=UNREACHABLE if is_unreachable else REFUSED
        ) from error
    stdout.write(token)
    return 0
