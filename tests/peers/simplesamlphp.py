"""SimpleSAMLphp from Debian, with settings for the tests, on the web server that is part of PHP."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.deadlines import eventually
from tests.ports import free_port

PROGRAM = shutil.which("php")
INSTALLED = Path("/usr/share/simplesamlphp/www")
_EXTENSIONS = Path("/usr/lib/php")
_PACKAGES = {
    "simplesamlphp": INSTALLED.exists(),
    "php-cli": PROGRAM is not None,
    "php-xml": bool(list(_EXTENSIONS.glob("*/dom.so"))),
    "php-mbstring": bool(list(_EXTENSIONS.glob("*/mbstring.so"))),
}
MISSING = [package for package, is_there in _PACKAGES.items() if not is_there]
_METADATA = Path(__file__).parent / "drivers" / "simplesamlphp_metadata.php"

_START_SECONDS = 20.0
_PASSWORD = "studentpass"
PERSON = {"uid": ["248289"], "mail": ["grace@corp.example.test"], "givenName": ["Grace"], "sn": ["Hopper"]}
_PERSISTENT = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
_SIGNED = {"sign.authnrequest": True, "sign.logout": True, "validate.logout": True, "WantAssertionsSigned": True}
USER, PASSWORD = "grace", _PASSWORD


@dataclass(frozen=True)
class SimpleSaml:
    """A running installation of SimpleSAMLphp.

    The installation reads its settings for each request, so partners can be registered while it runs.
    """

    origin: str
    directory: Path
    log: Path

    @property
    def base(self) -> str:
        return f"{self.origin}/simplesamlphp"

    @property
    def service_metadata(self) -> str:
        return f"{self.base}/module.php/saml/sp/metadata.php/default-sp"

    @property
    def provider_metadata(self) -> str:
        return f"{self.base}/saml2/idp/metadata.php"

    @property
    def own_page(self) -> str:
        """Return the URL of a page that requires a login through the service provider and then shows the user."""
        return f"{self.base}/module.php/core/authenticate.php?as=default-sp"

    def log_in_at(self, metadata: bytes) -> None:
        """Register an identity provider by its metadata.

        Users of the service provider of this installation then log in at this identity provider.
        """
        self._know("saml20-idp-remote", metadata)

    def log_in_for(self, metadata: bytes) -> None:
        """Register a service provider by its metadata. Its users then log in at the identity provider of this installation."""
        self._know("saml20-sp-remote", metadata)

    def _know(self, kind: str, metadata: bytes) -> None:
        (self.directory / "partner.xml").write_bytes(metadata)
        assert PROGRAM is not None
        command = [PROGRAM, str(_METADATA), str(self.directory / "partner.xml"), kind]
        made = subprocess.run(command, env=_environment(self.directory), capture_output=True, text=True, timeout=20, check=False)
        assert "$metadata[" in made.stdout, made.stdout + made.stderr
        (self.directory / "metadata" / f"{kind}.php").write_text(made.stdout)


@contextmanager
def simplesamlphp(directory: Path, *, key: str, certificate: str, provider: str) -> Iterator[SimpleSaml]:
    """Run the installation as a service provider, whose users log in at `provider`, and as an identity provider with one user."""
    assert PROGRAM is not None
    port = free_port()
    running = SimpleSaml(f"http://127.0.0.1:{port}", directory, directory / "log" / "output")
    _configure(running, key=key, certificate=certificate, provider=provider)
    # Serve the installation below `/simplesamlphp`, because its pages contain links with this path.
    (directory / "www").mkdir()
    (directory / "www" / "simplesamlphp").symlink_to(INSTALLED)
    with running.log.open("wb") as output:
        process = subprocess.Popen(
            [PROGRAM, "-d", "opcache.enable=0", "-S", f"127.0.0.1:{port}", "-t", str(directory / "www")],
            env=_environment(directory),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        eventually(lambda: _listens(port), seconds=_START_SECONDS)
        yield running
    finally:
        process.terminate()
        process.wait(10)


def _configure(running: SimpleSaml, *, key: str, certificate: str, provider: str) -> None:
    directory = running.directory
    for name in ("cert", "log", "data", "temp", "metadata", "sessions"):
        (directory / name).mkdir()
    (directory / "cert" / "own.pem").write_text(key)
    (directory / "cert" / "own.crt").write_text(certificate)
    pair = {"privatekey": "own.pem", "certificate": "own.crt"}
    config = {
        "baseurlpath": f"{running.base}/",
        **{f"{name}dir": f"{directory}/{name}/" for name in ("cert", "data", "temp", "metadata")},
        "loggingdir": f"{directory}/log/",
        "logging.handler": "file",
        "logging.level": 7,
        "attributenamemapdir": "/etc/simplesamlphp/attributemap/",
        "secretsalt": "of a test",
        "auth.adminpassword": "of a test",
        "timezone": "UTC",
        "enable.saml20-idp": True,
        "module.enable": {"exampleauth": True, "core": True, "saml": True},
        "session.cookie.secure": False,
        "session.cookie.samesite": None,
        "session.cookie.name": "SimpleSAMLSessionID",
        "session.phpsession.savepath": f"{directory}/sessions",
        "language.cookie.secure": False,
        "language.cookie.samesite": None,
        "store.type": "phpsession",
        "metadata.sources": [{"type": "flatfile"}],
        "showerrors": True,
        "errorreporting": False,
    }
    sources = {
        "admin": ["core:AdminPassword"],
        "default-sp": {"0": "saml:SP", "entityID": f"{running.origin}/sp", **pair, "idp": provider, **_SIGNED},
        "people": {"0": "exampleauth:UserPass", f"{USER}:{PASSWORD}": PERSON},
    }
    hosted = {
        "host": "__DEFAULT__",
        **pair,
        "auth": "people",
        "NameIDFormat": _PERSISTENT,
        "authproc": {"3": {"class": "saml:AttributeNameID", "attribute": "uid", "Format": _PERSISTENT}},
        "validate.authnrequest": True,
        "sign.logout": True,
    }
    (directory / "config.php").write_text(_php("$config", config))
    (directory / "authsources.php").write_text(_php("$config", sources))
    (directory / "metadata" / "saml20-idp-hosted.php").write_text(_php("$metadata", {f"{running.origin}/idp": hosted}))


def _php(name: str, value: Mapping[str, Any]) -> str:
    """Return the content of a settings file of PHP that sets the variable `name`.

    The value is JSON in a PHP string, in which only single quotes and backslashes must be escaped.
    """
    text = json.dumps(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"<?php\n{name} = json_decode('{text}', true);\n"


def _environment(directory: Path) -> dict[str, str]:
    return os.environ | {"SIMPLESAMLPHP_CONFIG_DIR": str(directory)}


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0
