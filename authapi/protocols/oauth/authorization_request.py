"""A checked authorization request, and the settings of a client that affect it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from authapi.compliance.levels import NONE as NO_LEVEL
from authapi.details.objects import Detail
from authapi.protocols.oauth.asked_claims import NONE, AskedClaims


@dataclass(frozen=True)
class ClientFacts:
    """The settings of a client that affect its authorization requests."""

    client_id: str
    callbacks: tuple[str, ...] = ()
    web_origins: tuple[str, ...] = ()
    grant_types: frozenset[str] = frozenset()
    is_public: bool = False
    takes_plain: bool = False
    takes_wildcards: bool = True
    is_native: bool = False
    # Whether requests must contain `redirect_uri` (Core 1.0, 3.1.2.1). True for clients with standard answers. For other clients, the first
    # registered URL replaces a missing `redirect_uri`.
    names_redirect_uri: bool = False
    requires_push: bool = False
    requires_signature: bool = False
    level: str = NO_LEVEL
    # Whether the parameter `resource` names the API if the request has no `audience`.
    reads_resource: bool = False


@dataclass(frozen=True)
class Target:
    """Where the response is sent, for a success or an error: a registered URL, a response mode, and the `state` of the request."""

    redirect_uri: str
    mode: str
    state: str | None = None
    web_origin: str = ""

    @property
    def is_framed(self) -> bool:
        """Whether the application opened the window that shows the pages, and waits for a message from this window."""
        return self.mode == "web_message"


@dataclass(frozen=True)
class AuthorizationRequest:
    """An authorization request that passed the checks. An absent text is empty.

    An absent `state` or `audience` is None, because an empty value has another meaning.
    """

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
    # The authorization details of the request, parsed, but not yet checked against the API.
    details: tuple[Detail, ...] = field(default=(), repr=False)
    claims: AskedClaims = field(default=NONE, repr=False)
    acr_values: tuple[str, ...] = ()

    @property
    def is_silent(self) -> bool:
        """Whether the request allows no page (Core 1.0, 3.1.2.1)."""
        return "none" in self.prompts
