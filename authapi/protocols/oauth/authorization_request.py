"""An authorization request, once it is checked, and what of a client decides about it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from authapi.compliance.levels import NONE as NO_LEVEL
from authapi.details.objects import Detail
from authapi.protocols.oauth.asked_claims import NONE, AskedClaims


@dataclass(frozen=True)
class ClientFacts:
    """What of a client decides about a request, by the words of the wire."""

    client_id: str
    callbacks: tuple[str, ...] = ()
    web_origins: tuple[str, ...] = ()
    grant_types: frozenset[str] = frozenset()
    is_public: bool = False
    takes_plain: bool = False
    takes_wildcards: bool = True
    is_native: bool = False
    # Core 1.0, 3.1.2.1: without the standard's answers the first registered address stands for one that is absent.
    names_redirect_uri: bool = False
    requires_push: bool = False
    requires_signature: bool = False
    level: str = NO_LEVEL
    # Whether `resource` names an API where no audience does.
    reads_resource: bool = False


@dataclass(frozen=True)
class Target:
    """Where an answer goes, be it good or bad: to a registered address, in one of the modes, with the request's state."""

    redirect_uri: str
    mode: str
    state: str | None = None
    web_origin: str = ""

    @property
    def is_framed(self) -> bool:
        """Whether the pages stand in a window that the application has opened and listens to."""
        return self.mode == "web_message"


@dataclass(frozen=True)
class AuthorizationRequest:
    """A request that may be answered. Absent texts are empty, but `state` and `audience`, where empty and absent differ."""

    target: Target
    client_id: str
    response_types: frozenset[str]
    is_redirect_uri_given: bool = True
    scope: str = "openid"
    audience: str | None = None
    nonce: str = ""
    code_challenge: str = field(default="", repr=False)
    code_challenge_method: str = ""
    dpop_jkt: str = ""
    prompts: frozenset[str] = frozenset()
    max_age: int | None = None
    connection: str = ""
    organization: str = ""
    invitation: str = field(default="", repr=False)
    login_hint: str = ""
    screen_hint: str = ""
    ui_locales: str = ""
    id_token_hint: str = field(default="", repr=False)
    # What was asked for beside scopes, read but not judged: that takes the API.
    details: tuple[Detail, ...] = field(default=(), repr=False)
    claims: AskedClaims = field(default=NONE, repr=False)
    acr_values: tuple[str, ...] = ()

    @property
    def is_silent(self) -> bool:
        """Whether no page may be shown (Core 1.0, 3.1.2.1)."""
        return "none" in self.prompts
