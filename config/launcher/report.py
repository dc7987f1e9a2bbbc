"""The report of `make up`: `.data/up.json` for scripts, `.data/up.env` for shells, and a text for people with commands to copy."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from config.launcher.directories import write_private
from config.launcher.options import ROOT, Options
from config.launcher.tls import ServerCertificate

Facts = dict[str, Any]
Measured = dict[str, float]
PROCESSES = ("web", "worker", "beat", "postgres", "redis", "scim")
_FILE = "up.json"
_SHELL_FILE = "up.env"
# Members with another name in `up.env`, because shells already use the variable `USER`.
_SHELL_NAMES = {"user": "DEMO_USER", "user_password": "DEMO_USER_PASSWORD"}
# The same URL as in `config.demonstration.demo_sign_in`. That module needs Django's models, which the launcher cannot import.
_CALLBACK = "http://localhost:3000/callback"
# The user of step 3 of the README.
_FIRST_USER = {
    "connection": "people",
    "user_id": "ada",
    "email": "ada@example.com",
    "password": "Correct-Horse-7-Battery",
    "name": "Ada",
}


def facts(options: Options, secrets: dict[str, str], seeded: Facts, certificate: ServerCertificate | None) -> Facts:
    """Return the members of `up.json` except the process ids; members about the demo are null without demo data."""
    is_demo = bool(seeded.get("client_id"))
    known: Facts = {
        "base_url": f"{options.origin}/api/v2",
        "auth_url": f"{options.origin}/",
        "admin_url": f"{options.origin}/admin/",
        "admin_user": seeded.get("admin_user"),
        "admin_password": secrets["DEMO_ADMIN_PASSWORD"] if is_demo else None,
        "client_id": seeded.get("client_id"),
        "client_secret": secrets["DEMO_CLIENT_SECRET"] if is_demo else None,
        **_sign_in_facts(options, secrets, seeded, is_demo=is_demo),
        "scim_base_url": options.scim_base_url,
        "scim_bearer_token": secrets["DEMO_SCIM_TOKEN"],
        "stream_id": seeded.get("stream_id"),
        "tenant": seeded.get("tenant"),
    }
    if certificate:
        known["ca_file"] = str(certificate.authority)
    return known


def _sign_in_facts(options: Options, secrets: dict[str, str], seeded: Facts, *, is_demo: bool) -> Facts:
    names = ("application_id", "application_secret", "authorize_url", "user", "user_password")
    if not is_demo:
        return dict.fromkeys(names)
    asked = {"response_type": "code", "client_id": seeded["application_id"], "redirect_uri": _CALLBACK}
    address = f"{options.origin}/authorize?{urlencode({**asked, 'scope': 'openid profile email', 'state': 'demo'})}"
    values = (seeded["application_id"], secrets["DEMO_APPLICATION_SECRET"], address, seeded["user"], secrets["DEMO_USER_PASSWORD"])
    return dict(zip(names, values, strict=True))


def write(data_dir: Path, known: Facts, pids: dict[str, list[int]], *, name: str = _FILE) -> Path:
    """Write the members of `up.json`, with the process ids, atomically and with mode 0600."""
    path = data_dir / name
    write_private(path, json.dumps({**known, "pids": pids}, indent=2) + "\n")
    return path


def write_for_shells(data_dir: Path, known: Facts) -> None:
    """Write `up.env` with mode 0600: `. .data/up.env` sets every member of `up.json` as a variable with its name in capitals."""
    values = {_SHELL_NAMES.get(name, name.upper()): value for name, value in known.items() if value is not None}
    write_private(data_dir / _SHELL_FILE, "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items()))


def withdraw(data_dir: Path) -> None:
    """Remove `up.json` and `up.env`: the service is stopped."""
    for name in (_FILE, _SHELL_FILE):
        (data_dir / name).unlink(missing_ok=True)


def block(options: Options, known: Facts, measured: Measured, *, delays: str) -> str:
    """Return the report shown after the start. Its commands can be pasted one after the other."""
    lines = [
        "",
        f"The service is ready at {options.origin}",
        "",
        f"  Admin       {known['admin_url']}",
        *_demo_lines(known),
        f"  Management  {options.origin}/api/docs  (all operations; the base URL is {known['base_url']})",
        f"  Sign-in     {known['auth_url']}.well-known/openid-configuration",
        *_sign_in_lines(known),
        f"  SCIM        {known['scim_base_url']}/Users  (bearer token {known['scim_bearer_token']})",
        f"  Messages    {options.data_dir / 'outbox'}  (mails and text messages, one file for each)",
        f"  Data        {options.data_dir}  (URLs and credentials: up.env for shells; with process ids: up.json for scripts)",
    ]
    if "ca_file" in known:
        lines.append(f"  Authority   {known['ca_file']}")
    if measured:
        lines += ["", _proof(measured)]
    if known["client_id"]:
        lines += ["", *_tour(options, known)]
    lines += [
        "",
        f"The service tries a failed delivery again after {_in_words(delays)} seconds (DELIVERY_RETRY_DELAYS), then stores a dead letter.",
        "make scim-stop and make scim-start stop and start only the SCIM server. Ctrl+C or make down stops the service.",
    ]
    return "\n".join([*lines, ""])


def _demo_lines(known: Facts) -> list[str]:
    if not known["client_id"]:
        return ["              The database already has tenants, so it gets no demo data: log in with your own account."]
    return [f"              {known['admin_user']}  {known['admin_password']}"]


def _sign_in_lines(known: Facts) -> list[str]:
    if not known["authorize_url"]:
        return []
    return [
        f"              {known['user']}  {known['user_password']}  at",
        f"              {known['authorize_url']}",
        f"              The login ends at {_CALLBACK}, where no program listens. The address then contains the code.",
    ]


def _proof(measured: Measured) -> str:
    return (
        f"Checked: the event of a new user arrived at /events after {measured['event_ms']:.0f} ms, and the user in the SCIM server after "
        f"{measured['scim_ms']:.0f} ms. The user is deleted again at both places."
    )


def _tour(options: Options, known: Facts) -> list[str]:
    """Return steps 2 to 4 of the README, with the same titles and commands.

    With another data directory or a certificate authority, the commands have further options.
    """
    is_default = options.data_dir == ROOT / ".data"
    variables = ".data/up.env" if is_default else shlex.quote(str(options.data_dir / "up.env"))
    elsewhere = "" if is_default else f"DATA_DIR={shlex.quote(str(options.data_dir))} "
    curl = 'curl -sS --cacert "$CA_FILE"' if "ca_file" in known else "curl -sS"
    begin = [f". {variables}", f"TOKEN=$({elsewhere}.venv/bin/python manage.py events token)"]
    bearer = '-H "Authorization: Bearer $TOKEN"'
    strategy = os.environ.get("DATABASE_STRATEGY") or "database"
    body = "-H 'Content-Type: application/json' -d"
    return [
        "The next steps, as in the README. Run them in the directory of the checkout.",
        "2. Watch the stream, in a second terminal:",
        *begin,
        f'{curl} -N "$BASE_URL/events" {bearer}',
        "3. Create users, in a third terminal:",
        *begin,
        f'{curl} "$BASE_URL/users" {bearer} {body} {shlex.quote(json.dumps(_FIRST_USER))}',
        "4. Find the user in the SCIM server:",
        'curl -sS -G "$SCIM_BASE_URL/Users" -H "Authorization: Bearer $SCIM_BEARER_TOKEN" '
        f"--data-urlencode 'filter=externalId eq \"{strategy}|{_FIRST_USER['user_id']}\"'",
    ]


def _in_words(delays: str) -> str:
    """Return `1, 2 and 4` for `1,2,4`."""
    *others, last = delays.split(",")
    return f"{', '.join(others)} and {last}" if others else last
