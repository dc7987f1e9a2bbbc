"""The report of `make up`: `.data/up.json` for scripts, `.data/up.env` for shells, and a text for people with commands to copy."""

from __future__ import annotations

import json
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
# The demo's application (`config.demonstration.demo_sign_in`); the launcher itself imports nothing from Django.
_CALLBACK = "http://localhost:3000/callback"


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
    """Write the facts and the process ids atomically with mode 0600."""
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
        f"Everything answers at {options.origin}",
        "",
        f"  Admin       {known['admin_url']}",
        *_demo_lines(known),
        f"  Management  {known['base_url']}",
        f"  Sign-in     {known['auth_url']}",
        *_sign_in_lines(known),
        f"  SCIM        {known['scim_base_url']}  (bearer token {known['scim_bearer_token']})",
        f"  Messages    {options.data_dir / 'outbox'}  (mails and text messages, one file for each)",
        f"  Data        {options.data_dir}  (addresses and process ids for scripts: up.json)",
    ]
    if "ca_file" in known:
        lines.append(f"  Authority   {known['ca_file']}")
    if measured:
        lines += ["", _proof(measured)]
    if known["client_id"]:
        lines += ["", *_commands(options, known)]
    lines += ["", f"Failed deliveries are tried again after {delays} s here (DELIVERY_RETRY_DELAYS), then they are dead letters."]
    lines.append("make scim-stop and make scim-start stop and start the SCIM server; Ctrl+C or make down stops everything.")
    return "\n".join([*lines, ""])


def _demo_lines(known: Facts) -> list[str]:
    if not known["client_id"]:
        return ["              The database holds other tenants, so no demo data was made: sign in with an account of yours."]
    return [f"              {known['admin_user']}  {known['admin_password']}"]


def _sign_in_lines(known: Facts) -> list[str]:
    if not known["authorize_url"]:
        return []
    return [
        f"              {known['user']}  {known['user_password']}  at",
        f"              {known['authorize_url']}",
        f"              It ends at {_CALLBACK}, where nothing listens: the address contains the code.",
    ]


def _proof(measured: Measured) -> str:
    return (
        f"Proved on real input: a new user's event came over /events after {measured['event_ms']:.0f} ms, the user was in the SCIM "
        f"server after {measured['scim_ms']:.0f} ms; both are deleted again."
    )


def _commands(options: Options, known: Facts) -> list[str]:
    curl = f"curl --silent --show-error{' --cacert ' + shlex.quote(known['ca_file']) if 'ca_file' in known else ''}"
    elsewhere = "" if options.data_dir == ROOT / ".data" else f"DATA_DIR={shlex.quote(str(options.data_dir))} "
    user = {"connection": "people", "email": "ada@example.com", "password": "Correct-Horse-7-Battery"}
    bearer = '-H "Authorization: Bearer $TOKEN"'
    body = "-H 'Content-Type: application/json' -d"
    return [
        "1. A token, in every terminal you use, in the directory of the checkout:",
        f"TOKEN=$({elsewhere}.venv/bin/python manage.py events token)",
        "2. Watch the events:",
        f"{curl} --no-buffer {known['base_url']}/events {bearer}",
        "3. In a second terminal, create a user:",
        f"{curl} {known['base_url']}/users {bearer} {body} '{json.dumps(user)}'",
        "4. Find the user in the SCIM server:",
        f"curl --silent --show-error -H 'Authorization: Bearer {known['scim_bearer_token']}' {known['scim_base_url']}/Users",
    ]
