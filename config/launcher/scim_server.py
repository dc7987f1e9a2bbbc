"""The demo's SCIM server: `scim2-server`, with a storage on disk instead of the storage in memory.

Run as `python -m config.launcher.scim_server DIRECTORY PORT`; the variable DEMO_SCIM_TOKEN has the bearer token.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from scim2_models import Resource, ResourceType, ScimProvider
from scim2_server.memory import InMemoryStorage
from scim2_server.service import ScimService
from scim2_server.testserver.application import BEARER_TOKEN_SCHEME, BearerTokenApplication
from scim2_server.testserver.cli import ThreadingWSGIServer
from scim2_server.utils import load_default_resource_types, load_default_schemas, load_default_service_provider_config


class KeptStorage(InMemoryStorage):
    """Keeps all resources in memory, and each resource in a file of its own. A write replaces the file atomically."""

    def __init__(self, directory: Path, provider: ScimProvider) -> None:
        super().__init__()
        self._directory = directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.resources = [_load(path, provider) for path in sorted(directory.glob("*/*.json"))]
        # After a restart, version numbers continue from the last stored number, so two states never have the same version.
        self.versions = itertools.count(1 + max((_number_of(resource) for resource in self.resources), default=0))

    def create(self, resource_type: ResourceType, resource: Resource[Any]) -> Resource[Any]:
        with self.lock:
            created = super().create(resource_type, resource)
            self._keep(resource_type, created)
            return created

    def update(self, resource_type: ResourceType, resource: Resource[Any], *, expected_version: str | None = None) -> Resource[Any]:
        with self.lock:
            updated = super().update(resource_type, resource, expected_version=expected_version)
            self._keep(resource_type, updated)
            return updated

    def delete(self, resource_type: ResourceType, resource_id: str, *, expected_version: str | None = None) -> None:
        with self.lock:
            super().delete(resource_type, resource_id, expected_version=expected_version)
            self._file(resource_type, resource_id).unlink(missing_ok=True)

    def _keep(self, resource_type: ResourceType, resource: Resource[Any]) -> None:
        path = self._file(resource_type, str(resource.id))
        path.parent.mkdir(mode=0o700, exist_ok=True)
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(resource.model_dump(scim_ctx=None, mode="json", by_alias=True, exclude_none=True)))
        draft.replace(path)

    def _file(self, resource_type: ResourceType, resource_id: str) -> Path:
        return self._directory / str(resource_type.name) / f"{resource_id}.json"


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        print(format % arguments, flush=True)


def serve(directory: Path, port: int, token: str) -> None:
    """Serve SCIM on 127.0.0.1:`port` below `/v2` until the process is stopped."""
    config = load_default_service_provider_config()
    config.authentication_schemes = [BEARER_TOKEN_SCHEME]
    provider = ScimProvider.from_discovery(load_default_schemas().values(), load_default_resource_types().values(), config=config)
    application = BearerTokenApplication(KeptStorage(directory, provider), provider, service=ScimService(provider), bearer_tokens=[token])
    with make_server("127.0.0.1", port, application, server_class=ThreadingWSGIServer, handler_class=_Handler) as server:
        server.serve_forever()


def _load(path: Path, provider: ScimProvider) -> Resource[Any]:
    content = json.loads(path.read_text())
    kind = next(kind for kind in provider.resource_types if kind.name == path.parent.name)
    model = provider.model_for(kind)
    if model is None or not issubclass(model, Resource):
        raise ValueError(f"{path} contains no resource that this server supports.")
    return model.model_validate(content)


def _number_of(resource: Resource[Any]) -> int:
    version = resource.meta.version if resource.meta else None
    digits = "".join(letter for letter in version or "" if letter.isdigit())
    return int(digits or 0)


if __name__ == "__main__":
    # Ctrl+C is the normal way to stop the server, and is not an error.
    with suppress(KeyboardInterrupt):
        serve(Path(sys.argv[1]), int(sys.argv[2]), os.environ["DEMO_SCIM_TOKEN"])
