"""The processes of `make up`, and the order in which they are started, verified and stopped."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import sys
from pathlib import Path

from config.launcher import environment, keys, postgres, report, tls, valkey, web
from config.launcher.console import Console
from config.launcher.control import Answer, Listener
from config.launcher.options import ROOT, Options
from config.launcher.processes import Program
from config.launcher.supervisor import Supervisor

# The phases stop in this order, because each phase needs the phases after it: streams end before the worker, and deliveries end before the
# servers that receive them.
STOP_ORDER = (("web", "beat"), ("worker",), ("scim",), ("redis", "postgres"))
_SEED_FACTS = "demo.json"


class Group:
    """All processes of one `make up`: the servers, the service and the demo."""

    def __init__(self, options: Options, console: Console) -> None:
        self._options = options
        self._console = console
        self._supervisor = Supervisor(console, on_change=self._publish)
        self._listener: Listener | None = None
        self._certificate = tls.server_certificate(options.data_dir) if options.is_tls else None
        self._environment: dict[str, str] = {}
        self._facts: report.Facts = {}
        self._published: dict[str, list[int]] = {}
        self._is_up = False

    def bring_up(self) -> None:
        """Start everything in order.

        1. The control socket, so that `make down` works from the first moment.
        2. The SCIM server, and PostgreSQL and Valkey unless their URLs are set in the environment.
        3. Migrations and the demo's data.
        4. Web and worker.
        5. The tour, which checks the main function, unless the database has other tenants.
        6. Beat, without waiting for it.
        """
        self._listener = Listener(self._options.data_dir, self._answer)
        self._supervisor.watch(self._listener.socket, self._listener.serve_one)
        self._start_servers()
        self._environment = environment.compose(self._options)
        environment.write(self._options, self._environment)
        environment.forget_counts(self._environment)
        self._supervisor.start("scim", self._scim)
        self._facts = self._prepare_data()
        self._supervisor.start("web", self._web)
        self._supervisor.start("worker", self._worker)
        self._supervisor.wait_until_ready("scim", "web")
        measured = self._tour() if self._facts.get("client_id") else {}
        self._supervisor.start("beat", self._beat)
        self._is_up = True
        self._publish()
        report.write_for_shells(self._options.data_dir, self._facts)
        self._console.release(with_held_lines=False)
        self._console.say(report.block(self._options, self._facts, measured, delays=self._environment["DELIVERY_RETRY_DELAYS"]))

    def stay_up(self) -> None:
        """Keep all processes running until an end is requested."""
        self._supervisor.run()

    def bring_down(self) -> None:
        """Stop everything in the order of `STOP_ORDER`, and remove the files with the URLs and process ids of the service."""
        report.withdraw(self._options.data_dir)
        self._supervisor.stop_all(*STOP_ORDER)
        if self._listener:
            self._listener.close()

    def _start_servers(self) -> None:
        data_dir = self._options.data_dir
        started = []
        if not self._options.database_url:
            self._supervisor.start("postgres", lambda: postgres.prepare(data_dir, durable=True))
            started.append("postgres")
        if not self._options.redis_url:
            self._supervisor.start("redis", lambda: valkey.prepare(data_dir, durable=True))
            started.append("redis")
        self._supervisor.wait_until_ready(*started)
        if "postgres" in started:
            postgres.ensure_database(data_dir)

    def _prepare_data(self) -> report.Facts:
        """Apply migrations and create the demo's data; return the facts for `up.json`."""
        self._console.say("Preparing the database ...")
        path = self._options.data_dir / _SEED_FACTS
        path.unlink(missing_ok=True)
        command = [sys.executable, str(ROOT / "manage.py"), "seed_demo", "--migrate", "--facts", str(path)]
        secrets = keys.load_or_create(self._options.data_dir)
        addresses = {"DEMO_SCIM_BASE_URL": self._options.scim_base_url}
        seed_environment = self._process_environment() | {name: secrets[name] for name in keys.DEMO_SECRETS} | addresses
        self._supervisor.run_once("seed", command, seed_environment)
        seeded = json.loads(path.read_text())
        return report.facts(self._options, secrets, seeded, self._certificate)

    def _tour(self) -> report.Measured:
        self._console.say("Checking the main function: a user, its event, the same user in the SCIM server ...")
        path = report.write(self._options.data_dir, self._facts, self._pids(), name="tour.json")
        try:
            printed = self._supervisor.run_once(
                "tour", [sys.executable, "-m", "config.launcher.tour", str(path)], self._process_environment()
            )
        finally:
            path.unlink(missing_ok=True)
        measured: report.Measured = json.loads(printed[-1])
        return measured

    def _answer(self, what: str) -> Answer:
        if what == "stop":
            self._supervisor.ask_to_stop()
            return {"done": True}
        if what == "scim-stop":
            return {"done": self._supervisor.pause("scim")}
        if what == "scim-start":
            return {"done": self._supervisor.resume("scim")}
        return {"error": "unknown request"}

    def _publish(self) -> None:
        pids = self._pids() if self._is_up else {}
        if pids != self._published:
            report.write(self._options.data_dir, self._facts, pids)
            self._published = pids

    def _pids(self) -> dict[str, list[int]]:
        found = {name: self._supervisor.pids(name) for name in report.PROCESSES}
        # Omit the child processes of the servers: they start and end with every connection.
        return {name: pids[:1] if name in ("postgres", "redis") else pids for name, pids in found.items()}

    def _process_environment(self) -> dict[str, str]:
        return environment.for_processes(self._environment)

    def _web(self) -> Program:
        command = web.command(self._options, self._certificate)
        return Program("web", command, is_ready=self._web_answers, environment=self._process_environment(), grace_seconds=20.0)

    def _worker(self) -> Program:
        arguments = ["worker", "--concurrency", "2", "--loglevel", "INFO", "--without-gossip", "--without-mingle"]
        # `make up` often runs as root, for example in a container. Celery would then print a long warning about root.
        quiet = ("-W", "ignore:You're running the worker with superuser privileges")
        command = (sys.executable, *quiet, "-m", "celery", "--quiet", "-A", "config", *arguments)
        return Program("worker", command, environment=self._process_environment(), grace_seconds=30.0)

    def _beat(self) -> Program:
        schedule = self._options.data_dir / "beat"
        schedule.mkdir(mode=0o700, exist_ok=True)
        arguments = ["beat", "--loglevel", "WARNING", "--schedule", str(schedule / "schedule"), "--pidfile", ""]
        command = (sys.executable, "-m", "celery", "--quiet", "-A", "config", *arguments)
        return Program("beat", command, environment=self._process_environment())

    def _scim(self) -> Program:
        directory: Path = self._options.data_dir / "scim"
        command = (sys.executable, "-m", "config.launcher.scim_server", str(directory), str(self._options.scim_port))
        token = keys.load_or_create(self._options.data_dir)["DEMO_SCIM_TOKEN"]
        scim_environment = self._process_environment() | {"DEMO_SCIM_TOKEN": token}
        return Program("scim", command, is_ready=self._scim_answers, environment=scim_environment)

    def _scim_answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._options.scim_port), timeout=1.0).close()
        except OSError:
            return False
        return True

    def _web_answers(self) -> bool:
        context = ssl.create_default_context(cafile=str(self._certificate.authority)) if self._certificate else None
        port = self._options.port
        connection = (
            http.client.HTTPSConnection("localhost", port, timeout=5.0, context=context)
            if context
            else http.client.HTTPConnection("127.0.0.1", port, timeout=5.0)
        )
        try:
            connection.request("GET", "/.well-known/jwks.json", headers={"Host": f"localhost:{port}"})
            return connection.getresponse().status < 500
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
