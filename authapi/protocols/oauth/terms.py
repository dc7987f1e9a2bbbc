"""What a client gets for a user by OAuth, and the texts that describe this on the consent page."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext as _

from authapi.details.objects import Detail
from authapi.grants.details import details_for_user, type_of
from authapi.grants.entitlements import UserEntitlement, user_entitlement
from authapi.grants.targets import named_target
from authapi.login.protocol import ProtocolRequest
from authapi.login.wish import Explanation, Terms
from authapi.models import ApiResource
from authapi.protocols.oauth.asked_claims import NONE, AskedClaims
from authapi.protocols.oauth.detail_words import explained
from authapi.protocols.oauth.parameters import Parameters
from authapi.tenant_settings import sign_in_settings
from authapi.tokens.profile_claims import CLAIMS_OF_SCOPE
from identity.models import Organization, User

_SKIPS_FIRST_PARTY = "skip_consent_for_verifiable_first_party_clients"


def terms_of(
    request: ProtocolRequest,
    parameters: Parameters,
    user: User | None,
    organization: Organization | None,
    *,
    details: tuple[Detail, ...] = (),
    asked_claims: AskedClaims = NONE,
) -> Terms:
    """Return the terms of a request: its scopes, and the details and claims that it also requests. Raises `RequestRefused`."""
    entitlement = user_entitlement(
        host=request.host,
        client=request.client,
        user=user,
        audience=_audience(request, parameters),
        scope=parameters.scope,
        organization=organization,
    )
    resource = entitlement.resource
    details = details_for_user(details, request.client, resource) if details else ()
    claims = _further_claims(asked_claims, entitlement.scopes)
    return Terms(
        audience=entitlement.audience,
        scopes=entitlement.scopes,
        texts=_texts(entitlement, claims),
        resource=str(resource) if resource is not None else "",
        is_implied_for_first_party=resource is None or bool(resource.settings.get(_SKIPS_FIRST_PARTY, True)),
        details=details,
        claims=claims,
        explanations=_explanations(details, resource) if details and resource is not None else (),
    )


def _further_claims(asked: AskedClaims, scopes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the requested profile claims that no granted scope contains. Empty without the scope `openid`."""
    names = asked.names
    if not names or "openid" not in scopes:
        return ()
    opened = {claim for scope in scopes for claim in CLAIMS_OF_SCOPE.get(scope, ())}
    return tuple(name for name in names if name not in opened)


def _audience(request: ProtocolRequest, parameters: Parameters) -> str | None:
    resource = parameters.get("resource")
    if parameters.audience is not None or not resource or not sign_in_settings(request.host.tenant_id).reads_resource:
        return parameters.audience
    return named_target(request.host.tenant_id, [resource])


def _explanations(details: tuple[Detail, ...], resource: ApiResource) -> tuple[Explanation, ...]:
    return tuple(explained(each, type_of(each, resource)) for each in details)


def _texts(entitlement: UserEntitlement, claims: tuple[str, ...]) -> tuple[str, ...]:
    """Return each scope and each further claim in words. If a scope of an API has no description, its name is shown."""
    return scope_words(entitlement.scopes, entitlement.resource, claims)


def scope_words(scopes: Iterable[str], resource: ApiResource | None, claims: Iterable[str] = ()) -> tuple[str, ...]:
    """Return texts for scopes and for single claims. Without an API, the scopes are profile scopes. The result is never empty."""
    own = resource.scope_descriptions if resource else {}
    named = [_text(scope) if scope in _SIGN_IN else own.get(scope) or scope for scope in scopes]
    named += [_text_of_claim(claim) for claim in claims]
    return tuple(dict.fromkeys(text for text in named if text)) or (_("Know that you have logged in"),)


_SIGN_IN = frozenset({"openid", "profile", "email", "phone", "address", "offline_access", "online_access"})


def _text(scope: str) -> str:
    match scope:
        case "profile":
            return _("See your profile: your name, your picture and the like")
        case "email":
            return _("See your email address")
        case "phone":
            return _("See your phone number")
        case "address":
            return _("See your address")
        case "offline_access":
            return _("Stay connected while you are away")
        case "online_access":
            return _("Stay connected while you are logged in")
        case _:
            return ""


def _text_of_claim(claim: str) -> str:
    match claim:
        case "email" | "email_verified":
            return _text("email")
        case "phone_number" | "phone_number_verified":
            return _text("phone")
        case "picture":
            return _("See your picture")
        case "created_at" | "updated_at":
            return _("See when your account was created and last changed")
        case "identities":
            return _("See the accounts elsewhere that you log in with")
        case _:
            return _("See your name")
