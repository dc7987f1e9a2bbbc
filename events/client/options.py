"""Command-line options for the URL of a service and for credentials; shared by every command that reads a stream."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from events.client.credentials import ClientCredentials, Credentials, FixedToken, TokenFile, require_private
from events.client.exchange import Deadlines
from events.client.failures import StreamError
from events.client.proving import Prover, new_prover, prover_of
from events.client.server import InvalidAddress, Server, read_server

CREDENTIAL_SOURCES = """\
Credentials: the command uses the first of these that is present:
  --token-file FILE                         a file with an access token; read again after the service refused the token
  --client-id ID and --client-secret-file FILE
  EVENTS_TOKEN                              environment: an access token
  EVENTS_CLIENT_ID, EVENTS_CLIENT_SECRET    environment: a client, for which the command fetches and renews tokens
  up.json of this checkout                  if URL is not given and `make up` runs"""
CREDENTIALS_HELP = f"""{CREDENTIAL_SOURCES}
The client needs the scope read:events. No token and no secret is ever printed."""


class InvalidOptions(ValueError):
    """Raised for options that are invalid or exclude each other."""


@dataclass(frozen=True)
class Access:
    """A service, and the credentials with which the client reads from it."""

    server: Server
    credentials: Credentials


def add_access_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for the URL and the credentials."""
    parser.add_argument(
        "url", nargs="?", metavar="URL", help="https://host, .../api/v2 or .../api/v2/events; without it, the service that `make up` runs"
    )
    who = parser.add_argument_group("credentials")
    who.add_argument("--token-file", type=Path, metavar="FILE", help="read the access token from FILE")
    who.add_argument("--client-id", metavar="ID", help="id of a client")
    who.add_argument("--client-secret-file", type=Path, metavar="FILE", help="read the secret of the client from FILE")
    who.add_argument("--client-secret", metavar="SECRET", help="the secret itself; other users of the machine can see it")
    who.add_argument("--audience", metavar="URL", help="audience of the requested token; default: the base URL of the management interface")
    who.add_argument("--dpop", action="store_true", help="bind the token to a new key; each request proves possession of the key (DPoP)")
    who.add_argument("--dpop-key-file", type=Path, metavar="FILE", help="like --dpop, with the private EC key (P-256) in FILE")
    where = parser.add_argument_group("connection")
    where.add_argument(
        "--connect-to", metavar="HOST[:PORT]", help="connect to this address under the host name of URL, to bypass a proxy or DNS"
    )
    where.add_argument("--ca-file", metavar="FILE", help="trust this certificate authority instead of the system's")
    where.add_argument("--allow-http", action="store_true", help="send tokens over plain http to other machines")
    where.add_argument("--connect-timeout", type=_seconds, default=10.0, metavar="SECONDS", help="connect timeout (10)")
    where.add_argument(
        "--read-timeout",
        type=_seconds,
        default=45.0,
        metavar="SECONDS",
        help="read timeout: the connection is considered dead if no data arrives for this time (45)",
    )


def deadlines_of(options: Mapping[str, Any]) -> Deadlines:
    return Deadlines(options["connect_timeout"], options["read_timeout"])


def access_of(options: Mapping[str, Any], environment: Mapping[str, str], up_file: Path) -> Access:
    """Return the service from the options or from a running checkout, with credentials. Raises `InvalidOptions` and `StreamError`."""
    facts = {} if options["url"] else _facts(up_file)
    url = options["url"] or facts.get("base_url")
    if not url:
        raise InvalidOptions("Give the URL of the service, because `make up` does not run here.")
    try:
        server = read_server(url, connect_to=options["connect_to"], ca_file=options["ca_file"] or facts.get("ca_file"))
    except InvalidAddress as error:
        raise InvalidOptions(str(error)) from error
    require_private(server, allow_http=options["allow_http"])
    credentials = _credentials(options, environment, facts, server)
    credentials.prover = _prover(options)
    return Access(server, credentials)


def _credentials(
    options: Mapping[str, Any], environment: Mapping[str, str], facts: Mapping[str, Any], server: Server
) -> FixedToken | TokenFile | ClientCredentials:
    if options["token_file"]:
        return TokenFile(options["token_file"])
    given_id, given_secret = options["client_id"], _secret(options)
    if not (given_id or given_secret) and environment.get("EVENTS_TOKEN"):
        return FixedToken(environment["EVENTS_TOKEN"])
    client_id = given_id or environment.get("EVENTS_CLIENT_ID")
    secret = given_secret or environment.get("EVENTS_CLIENT_SECRET")
    if not client_id and not secret:
        client_id, secret = facts.get("client_id"), facts.get("client_secret")
    if not client_id or not secret:
        raise InvalidOptions(f"Credentials are missing or incomplete.\n{CREDENTIALS_HELP}")
    return ClientCredentials(server, client_id, secret, audience=options["audience"], deadlines=deadlines_of(options))


def _prover(options: Mapping[str, Any]) -> Prover | None:
    if options["dpop_key_file"]:
        return prover_of(options["dpop_key_file"])
    if not options["dpop"]:
        return None
    if options["token_file"]:
        raise InvalidOptions("--dpop makes a new key, but the token in the file is bound to another key. Use --dpop-key-file.")
    return new_prover()


def _secret(options: Mapping[str, Any]) -> str | None:
    if options["client_secret_file"] is None:
        found: str | None = options["client_secret"]
        return found
    try:
        return str(options["client_secret_file"].read_text(encoding="utf-8")).strip()
    except (OSError, UnicodeError) as error:
        raise InvalidOptions(f"The secret cannot be read from {options['client_secret_file']}.") from error


def _facts(up_file: Path) -> dict[str, Any]:
    try:
        found = json.loads(up_file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise StreamError(f"{up_file} cannot be read.") from error
    return found if isinstance(found, dict) else {}


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 86_400:
        raise argparse.ArgumentTypeError("more than 0 and at most 86400 seconds")
    return seconds
