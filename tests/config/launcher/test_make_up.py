"""The commands of the README, from the first start to the end: start, printed commands, killed processes, stop, start with TLS, kill."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import ssl
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.config.launcher.polling import lives, until
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[3]
MEMBERS = {
    "base_url",
    "auth_url",
    "admin_url",
    "admin_user",
    "admin_password",
    "client_id",
    "client_secret",
    "application_id",
    "application_secret",
    "authorize_url",
    "user",
    "user_password",
    "scim_base_url",
    "scim_bearer_token",
    "stream_id",
    "tenant",
    "pids",
}
_ADDRESS = re.compile(r"https?://[^\s;)]+")
_CALLBACK = "http://localhost:3000/"
PROCESSES = {"web", "worker", "beat", "postgres", "redis", "scim"}
# A start takes seconds on an idle machine and much longer on a busy machine.
pytestmark = pytest.mark.slow


class Checkout:
    """A checkout with its own data directory and two ports, and the commands for it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        # Remove the variables of the test run, because the commands must run with the defaults of a new user.
        unset = ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE", "REDIS_PREFIX", "PYTEST_XDIST_WORKER")
        inherited = {name: value for name, value in os.environ.items() if name not in unset and not name.endswith("_KEYS")}
        settings_of_tests = ("INSECURE_HTTP", "DATABASE_POOL", "EVENTS_", "OUTBOUND_", "DELIVERY_")
        inherited = {name: value for name, value in inherited.items() if not name.startswith(settings_of_tests)}
        self.environment = {**inherited, "DATA_DIR": str(directory), "PORT": str(free_port()), "SCIM_PORT": str(free_port())}

    def run(self, command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "config.launcher", command],
            cwd=ROOT,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def up(self, **variables: str) -> str:
        done = self.run("up", DETACH="1", **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.directory / "up.json").read_text())
        return found

    def pids(self, name: str) -> list[int]:
        found: list[int] = self.facts()["pids"][name]
        return found

    def everything(self) -> list[int]:
        return [pid for name in PROCESSES for pid in self.pids(name)]


def status(url: str, ca_file: str | None = None) -> int:
    context = ssl.create_default_context(cafile=ca_file) if ca_file else None
    # The login page requires the cookie that the redirect to the login page sets.
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(), urllib.request.HTTPSHandler(context=context))
    try:
        with browser.open(url, timeout=5) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return int(error.code)
    except OSError:
        return 0


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    made = Checkout(tmp_path_factory.mktemp("up"))
    yield made
    made.run("down")


@pytest.fixture(scope="module")
def block(checkout: Checkout) -> str:
    """Start all services with `make up`, and return the text that the command printed."""
    return checkout.up()


def test_the_file_up_json_is_complete_and_all_files_of_make_up_are_private(checkout: Checkout, block: str) -> None:
    facts = checkout.facts()

    assert set(facts) == MEMBERS
    assert set(facts["pids"]) == PROCESSES
    assert all(facts[name] for name in MEMBERS)
    assert all(lives(pid) for pid in checkout.everything())
    assert {
        stat.S_IMODE((checkout.directory / name).stat().st_mode) for name in ("up.json", "up.env", "keys", "environment", "up.log")
    } == {0o600}
    assert facts["admin_password"] in block
    assert "after 1, 2 and 4 seconds" in block


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed, and the printed lines call it")
def test_the_printed_commands_work_when_pasted(checkout: Checkout, block: str) -> None:
    lines = [line for line in block.splitlines() if line.startswith((". ", "TOKEN=", "curl "))]
    variables, token, events, again_variables, again_token, create, find = lines
    assert (again_variables, again_token) == (variables, token)
    begin = f"cd {ROOT}\n{variables}\n{token}\n"

    printed = subprocess.run(
        ["sh", "-c", f"{begin}{create}\n{events} --max-time 1 || true\n"], capture_output=True, text=True, check=True
    ).stdout

    assert '"email":"ada@example.com"' in printed.replace(": ", ":")
    assert ":connected" in printed
    until(lambda: '"Ada"' in subprocess.run(["sh", "-c", f"{begin}{find}"], capture_output=True, text=True, check=True).stdout)


def test_every_printed_address_answers(checkout: Checkout, block: str) -> None:
    addresses = [address for address in _ADDRESS.findall(block) if not address.startswith(_CALLBACK)]
    facts = checkout.facts()
    # SCIM and the management interface require a token.
    protected = {facts["base_url"], f"{facts['scim_base_url']}/Users"}
    assert protected < set(addresses)
    assert {facts["admin_url"], facts["authorize_url"], facts["auth_url"].rstrip("/")} < set(addresses)
    assert {address: status(address) for address in addresses} == {address: 401 if address in protected else 200 for address in addresses}


def test_steps_of_the_readme_are_printed_with_their_titles_and_commands(checkout: Checkout, block: str) -> None:
    readme = (ROOT / "README.md").read_text()
    titles = re.findall(r"^(\d\. .+?)(?:, in a \w+ terminal)?:$", block, re.MULTILINE)
    assert [title[:2] for title in titles] == ["2.", "3.", "4."]
    for title in titles:
        assert f"### {title}\n" in readme
    default = block.replace(f"{checkout.directory}/up.env", ".data/up.env").replace(f"DATA_DIR={checkout.directory} ", "")
    begin, token, events = [line for line in default.splitlines() if line.startswith((". ", "TOKEN=", "curl "))][:3]
    assert f"{begin}\n{token}\n{events}\n" in readme
    for content in re.findall(r"-d '(.+)'", default):
        assert content in readme
    assert "Sign-in" in block
    assert "below `Sign-in`" in readme


def test_a_second_start_is_refused_with_one_message(checkout: Checkout, block: str) -> None:
    for variables in ({}, {"DETACH": "1"}):
        done = checkout.run("up", **variables)
        assert done.returncode == 1
        assert done.stdout == f"make up: The service is already running at {checkout.facts()['auth_url']}: make down stops it.\n"


def test_a_killed_web_process_restarts_and_its_new_pid_is_recorded(checkout: Checkout, block: str) -> None:
    before = checkout.pids("web")
    for pid in before:
        os.kill(pid, signal.SIGKILL)

    until(lambda: bool(checkout.pids("web")) and not set(before) & set(checkout.pids("web")))
    until(lambda: status(f"{checkout.facts()['auth_url']}.well-known/jwks.json") == 200, seconds=60)


def test_the_scim_server_can_be_stopped_alone_and_stays_stopped_until_it_is_started(checkout: Checkout, block: str) -> None:
    users = f"{checkout.facts()['scim_base_url']}/Users"
    assert checkout.run("scim-stop").stdout == "The SCIM server has stopped.\n"
    assert (status(users), checkout.pids("scim")) == (0, [])
    assert checkout.run("scim-stop").stdout == "The SCIM server was stopped already.\n"

    assert checkout.run("scim-start").stdout == "The SCIM server answers again.\n"
    # 401: the server runs and requires its token.
    assert status(users) == 401
    assert len(checkout.pids("scim")) == 1


def test_make_down_stops_everything_and_the_next_make_up_finds_the_data(checkout: Checkout, block: str) -> None:
    before, processes = checkout.facts(), checkout.everything()

    assert checkout.run("down").stdout == "Everything has stopped.\n"

    assert not [pid for pid in processes if lives(pid)]
    assert not any((checkout.directory / name).exists() for name in ("up.json", "up.env"))
    assert checkout.run("down").stdout == "Nothing is running.\n"
    assert checkout.run("scim-stop").returncode == 1
    checkout.up(TLS="1")
    after = checkout.facts()
    assert [after[name] for name in ("client_id", "client_secret", "stream_id")] == [
        before[name] for name in ("client_id", "client_secret", "stream_id")
    ]
    assert after["base_url"].startswith("https://")
    assert status(f"{after['auth_url']}.well-known/jwks.json", after["ca_file"]) == 200


def test_the_event_of_a_new_user_arrives_in_a_stream_that_daphne_serves(checkout: Checkout, block: str) -> None:
    checkout.run("down")
    shown = checkout.up(WEB_SERVER="daphne")
    command_lines = [Path(f"/proc/{pid}/cmdline").read_text() for pid in checkout.pids("web")]
    assert any("\0daphne\0" in line for line in command_lines)
    assert "Checked: the event of a new user arrived at /events after" in shown


def test_killing_the_supervisor_leaves_no_orphaned_process(checkout: Checkout, block: str) -> None:
    processes = checkout.everything()
    supervisor = int(Path(f"/proc/{checkout.pids('web')[0]}/stat").read_text().rpartition(")")[2].split()[1])

    os.kill(supervisor, signal.SIGKILL)

    until(lambda: not [pid for pid in processes if lives(pid)], seconds=60)


def test_make_reset_asks_for_confirmation_and_then_removes_the_data(checkout: Checkout, block: str) -> None:
    unanswered = subprocess.run(
        [sys.executable, "-m", "config.launcher", "reset"],
        cwd=ROOT,
        env=checkout.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert unanswered.returncode == 1
    assert "make reset YES=1" in unanswered.stderr
    assert checkout.directory.exists()

    assert checkout.run("reset", YES="1").returncode == 0
    assert not checkout.directory.exists()
