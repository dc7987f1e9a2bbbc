"""The request of the engine (`oauthlib`), built from parameters that the endpoints have read from a URL, a posted form, JSON or a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oauthlib.common import Request

from authapi.details.objects import Detail
from authapi.protocols.oauth.asked_claims import NONE
from authapi.protocols.oauth.authorization_request import ClientFacts, Target

_BLANK: dict[str, Any] = vars(Request("", "POST"))


class EngineRequest(Request):  # type: ignore[misc]  # the engine has no types
    """A request without parameters. The endpoint sets the members that the engine needs.

    So a sent parameter cannot overwrite a member such as `user` or `extra_credentials`. The engine's constructor would also use 16 µs of
    CPU time to parse empty values.
    """

    # The names of repeated parameters; always empty. If this contained a name, the engine would raise an error that only the error page
    # shows. This service refuses repeated parameters itself, with an error that names the parameter (`authapi.protocols.oauth.checks`).
    duplicate_params = ()

    def __init__(self) -> None:
        self.__dict__.update(_BLANK, headers={})


class AuthorizationCall(EngineRequest):
    """An authorization request. The URL for the response (`target`) is known."""

    def __init__(self, values: Mapping[str, str], repeated: frozenset[str], client: ClientFacts, target: Target) -> None:
        super().__init__()
        self.values, self.repeated, self.target = values, repeated, target
        self.client, self.client_id = client, client.client_id
        self.types = response_types(self.text("response_type"))
        self.response_type = engine_name(self.types)
        self.scope = self.text("scope")
        self.prompts: frozenset[str] = frozenset()
        self.is_pushed = self.is_signed = False
        self.details: tuple[Detail, ...] = ()
        self.claims = NONE

    def text(self, name: str) -> str:
        return self.values.get(name, "")


def response_types(text: str) -> frozenset[str]:
    """Return the response type as a set, because the order of its words has no meaning."""
    return frozenset(text.split())


def engine_name(types: frozenset[str]) -> str:
    """Return the name of a set of response types in the engine's table, which contains each set in one order only."""
    return " ".join(sorted(types))
