"""Authorization details in grants: which types a client may name at an API, and which granted details a request selects."""

from __future__ import annotations

from dataclasses import replace

from authapi.details.objects import Detail, DetailsRefused, accepted, judge, read_details
from authapi.details.types import MEMBER, DetailType, types_of
from authapi.details.within import all_within
from authapi.failures import RequestRefused
from authapi.failures.oauth import OAuthCase
from authapi.grants.entitlements import resource_of
from authapi.models import ApiResource, Client
from authapi.services import grant_terms
from authapi.services.grant_terms import GrantTerms
from authapi.token_request import TokenRequest
from authapi.tokens.user_tokens import UserIssue
from foundation.memory.ttl_cache import Remembered

# RFC 9396, 10: the types that a client declares. A client that declares no types may use all types of the API.
CLIENT_MEMBER = "authorization_details_types"


def requested_details(request: TokenRequest) -> tuple[Detail, ...]:
    """Return the details of a token request: JSON text, or a list in a JSON body. Empty if the request has no details.

    Raises `RequestRefused`.
    """
    if MEMBER not in request.form:
        return ()
    return read(request.form[MEMBER])


def read(sent: object) -> tuple[Detail, ...]:
    """Return the objects of a parameter. Raises `RequestRefused` for a malformed value."""
    try:
        return read_details(sent)
    except DetailsRefused as error:
        raise refused(str(error)) from error


def details_for_user(details: tuple[Detail, ...], client: Client, resource: ApiResource | None) -> tuple[Detail, ...]:
    """Return the details that a client requests at an API for a user. Raises `RequestRefused` for details that the client may not have."""
    if resource is None:
        raise refused("The authorization_details need the audience of an API.")
    return _judged(details, _types_for_user(client, resource), resource)


def details_for_client(request: TokenRequest, client: Client, resource: ApiResource, grant: GrantTerms | None) -> tuple[Detail, ...]:
    """Return the details that a client requests at an API for itself. Raises `RequestRefused` for details that the client may not have."""
    details = requested_details(request)
    return _judged(details, _types(client, resource, grant.details_types if grant else ()), resource) if details else ()


def narrowed(login: UserIssue, request: TokenRequest) -> UserIssue:
    """Return a login with the details that this request names (RFC 9396, 6). If the request names no details, the login has all granted
    details.

    Raises `RequestRefused` for more than was granted.
    """
    details = requested_details(request)
    if not details:
        return login
    if login.asked is None or not all_within(details, login.asked.details):
        raise refused("The authorization_details request more than was granted.")
    resource = resource_of(login.host.tenant_id, login.audience)
    return replace(login, asked=replace(login.asked, details=details_for_user(details, login.client, resource)))


def still_granted_details(login: UserIssue, resource: ApiResource | None) -> UserIssue:
    """Return a login with the details that its API and its client still allow.

    Other details are dropped without an error, like scopes that are no longer granted.
    """
    if login.asked is None or not login.asked.details:
        return login
    kept: tuple[Detail, ...] = ()
    if resource is not None:
        kept = accepted(login.asked.details, _types_for_user(login.client, resource), audience=resource.identifier)
    return replace(login, asked=replace(login.asked, details=kept))


def without_details(login: UserIssue) -> UserIssue:
    """Return a login without details, for a token whose API is not the API of the granted details."""
    return replace(login, asked=replace(login.asked, details=())) if login.asked is not None and login.asked.details else login


def type_of(detail: Detail, resource: ApiResource) -> DetailType:
    """Return the type of an object that passed its checks."""
    return types_of(resource.settings)[detail["type"]]


def _load_types(tenant_id: str) -> tuple[str, ...]:
    """Return the names of the types of every API of a tenant, sorted."""
    rows = ApiResource.objects.of(tenant_id).filter(is_system=False, settings__has_key=MEMBER)
    return tuple(sorted({name for settings in rows.values_list("settings", flat=True) for name in types_of(settings)}))


# Cached, because each discovery document lists these types.
detail_types: Remembered[str, tuple[str, ...]] = Remembered(_load_types, seconds=1.0)


def refused(reason: str) -> RequestRefused:
    return RequestRefused(OAuthCase.INVALID_AUTHORIZATION_DETAILS, reason=reason)


def _judged(details: tuple[Detail, ...], types: dict[str, DetailType], resource: ApiResource) -> tuple[Detail, ...]:
    try:
        judge(details, types, audience=resource.identifier)
    except DetailsRefused as error:
        raise refused(str(error)) from error
    return details


def _types_for_user(client: Client, resource: ApiResource) -> dict[str, DetailType]:
    """Return the types that the API's access policy allows this client to request for users."""
    policy = resource.settings.get("subject_type_authorization", {}).get("user", {}).get("policy")
    if policy in (None, "allow_all"):
        return _types(client, resource, None)
    grant = grant_terms.for_users.get((client.tenant_id, client.pk, resource.pk)) if policy == "require_client_grant" else None
    return _types(client, resource, grant.details_types if grant else ())


def _types(client: Client, resource: ApiResource, granted: tuple[str, ...] | None) -> dict[str, DetailType]:
    if resource.is_system:
        # Only scopes decide what a token may do at the management interface.
        return {}
    named = client.settings.get(CLIENT_MEMBER)
    return {
        name: known
        for name, known in types_of(resource.settings).items()
        if (granted is None or name in granted) and (named is None or name in named)
    }
