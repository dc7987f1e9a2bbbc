"""What a client gets for a user by OAuth, and how a consent page says it."""

from __future__ import annotations

from django.utils.translation import gettext as _

from authapi.grants.entitlements import UserEntitlement, user_entitlement
from authapi.login.protocol import ProtocolRequest
from authapi.login.wish import Terms
from authapi.protocols.oauth.parameters import Parameters
from identity.models import Organization, User

_SKIPS_FIRST_PARTY = "skip_consent_for_verifiable_first_party_clients"


def terms_of(request: ProtocolRequest, parameters: Parameters, user: User | None, organization: Organization | None) -> Terms:
    """Return what the request gets the client. Raises `RequestRefused`."""
    entitlement = user_entitlement(
        host=request.host,
        client=request.client,
        user=user,
        audience=parameters.audience,
        scope=parameters.scope,
        organization=organization,
    )
    resource = entitlement.resource
    return Terms(
        audience=entitlement.audience,
        scopes=entitlement.scopes,
        texts=_texts(entitlement),
        resource=str(resource) if resource is not None else "",
        is_implied_for_first_party=resource is None or bool(resource.settings.get(_SKIPS_FIRST_PARTY, True)),
    )


def _texts(entitlement: UserEntitlement) -> tuple[str, ...]:
    """Return each scope in words; a scope of an API without a description is named."""
    own = entitlement.resource.scope_descriptions if entitlement.resource else {}
    named = [_text(scope) if scope in _SIGN_IN else own.get(scope) or scope for scope in entitlement.scopes]
    return tuple(text for text in named if text) or (_("Know that you have logged in"),)


_SIGN_IN = frozenset({"openid", "profile", "email", "phone", "address", "offline_access", "online_access"})


def _text(scope: str) -> str:
    match scope:
        case "profile":
            return _("See your profile: your name, your picture and the like")
        case "email":
            return _("See your e-mail address")
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
