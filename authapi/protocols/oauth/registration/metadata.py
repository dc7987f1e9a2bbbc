"""Maps client metadata of RFC 7591, 2 to the settings of this service.

Unknown members are ignored (RFC 7591, 2). A known member that is not supported is refused, because the client would rely on the member.
Each registration is complete: absent members get their defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from authapi.client_auth.signatures import ALGORITHMS
from authapi.clients.logout_addresses import front_channel_problem
from authapi.details.types import MAX_TYPES, TYPE
from authapi.failures import RequestRefused
from authapi.failures.registration import RegistrationCase
from authapi.grants.device_code import GRANT as DEVICE_GRANT
from authapi.models import Client
from authapi.protocols.oauth.registration.keys import certificates, refused, signing_keys, subject
from authapi.protocols.oauth.registration.redirects import MOST_ADDRESSES, address_problem, is_native
from authapi.services.client_credentials import NewCredential
from authapi.services.registered_clients import Registration
from authapi.tokens.signing import RSA_ALGORITHMS, SHARED

# The list contains no grant in which the application sees a password, and no grant that puts tokens into a URL.
GRANTS = ("authorization_code", "refresh_token", "client_credentials", DEVICE_GRANT)
METHODS = (
    "none", "client_secret_basic", "client_secret_post", "private_key_jwt", "tls_client_auth", "self_signed_tls_client_auth",
)  # fmt: skip
_CERTIFICATE_METHODS = ("tls_client_auth", "self_signed_tls_client_auth")
_PROOFS = ("private_key_jwt", *_CERTIFICATE_METHODS)
_LONGEST_NAME = 255
_LONGEST_LINK = 2048
_NO_ENCRYPTION = "This service sends no encrypted documents to clients: leave the member out."
_NOT_SIGNED = "This service does not sign this document for clients: leave the member out."
# Members that request unsupported features, with the values that are accepted nevertheless.
_UNSERVED: dict[str, tuple[tuple[Any, ...], str]] = {
    "subject_type": (("public",), "Each application sees the same user id: the only subject type is public."),
    "sector_identifier_uri": ((), "Each application sees the same user id, so there are no sectors: leave the member out."),
    "default_max_age": ((), "Send max_age with each request."),
    "default_acr_values": ((), "Send acr_values with each request."),
    "userinfo_signed_response_alg": (("none",), _NOT_SIGNED),
    "introspection_signed_response_alg": ((), _NOT_SIGNED),
    "authorization_signed_response_alg": ((), _NOT_SIGNED),
    **{f"{name}_encrypted_response_{part}": ((), _NO_ENCRYPTION) for name in ("id_token", "userinfo") for part in ("alg", "enc")},
    **{f"authorization_encrypted_response_{part}": ((), _NO_ENCRYPTION) for part in ("alg", "enc")},
    **{f"request_object_encryption_{part}": ((), _NO_ENCRYPTION) for part in ("alg", "enc")},
    **{
        f"tls_client_auth_san_{kind}": ((), "Certificates are compared by their subject: send tls_client_auth_subject_dn.")
        for kind in ("dns", "uri", "ip", "email")
    },
}


@dataclass(frozen=True)
class Metadata:
    """The members that the client sent, without null or empty members. Each method returns a default for a missing member."""

    members: Mapping[str, Any]

    def text(self, name: str, default: str = "") -> str:
        value = self.members.get(name, default)
        if not isinstance(value, str):
            raise refused(f"The member {name} must be a string.")
        return value

    def switch(self, name: str) -> bool:
        value = self.members.get(name, False)
        if not isinstance(value, bool):
            raise refused(f"The member {name} must be true or false.")
        return value

    def texts(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        value = self.members.get(name)
        if value is None:
            return default
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise refused(f"The member {name} must be a list of strings.")
        return tuple(dict.fromkeys(value))


def registration_of(members: Mapping[str, Any]) -> Registration:
    """Return the registration that the metadata describes. Raises `RequestRefused` with a text for the developer of the client."""
    sent = Metadata(members)
    _refuse_unserved(sent)
    method = sent.text("token_endpoint_auth_method", "client_secret_basic")
    if method not in METHODS:
        raise refused(f"Unsupported token_endpoint_auth_method. Expected one of {', '.join(METHODS)}.")
    grants = _grants(sent, method)
    redirects = _redirects(sent, grants)
    proofs, keys = _keys(sent, method)
    columns = {
        "name": _name(sent, redirects),
        "app_type": _app_type(sent, method, redirects),
        "redirect_uris": " ".join(redirects),
        "post_logout_redirect_uris": " ".join(_addresses(sent, "post_logout_redirect_uris")),
        "grant_types": list(grants),
        "token_endpoint_auth_method": Client.AuthMethod.POST if method in _PROOFS else method,
        "algorithm": _algorithm(sent, method),
    }
    return Registration(
        columns=columns,
        settings={**_settings(sent, method, has_keys=bool(keys)), **_logout_in_frames(sent, redirects)},
        method=method if method in _PROOFS else "",
        proofs=proofs,
        request_keys=keys,
        signs_requests=sent.switch("require_signed_request_object"),
    )


def _refuse_unserved(sent: Metadata) -> None:
    if "software_statement" in sent.members:
        raise RequestRefused(RegistrationCase.SOFTWARE_STATEMENT)
    for name, (harmless, sentence) in _UNSERVED.items():
        if name in sent.members and sent.members[name] not in harmless:
            raise refused(f"The member {name} is not supported. {sentence}")


def _grants(sent: Metadata, method: str) -> tuple[str, ...]:
    grants = sent.texts("grant_types", ("authorization_code",))
    unserved = [grant for grant in grants if grant not in GRANTS]
    if unserved:
        raise refused(f"Unsupported grant type: {unserved[0][:100]}. A client that registers itself may have {', '.join(GRANTS)}.")
    if not set(grants) - {"refresh_token"}:
        raise refused("The grant_types must have a grant with which the client gets its first tokens; refresh_token is not enough.")
    if "client_credentials" in grants and method == "none":
        raise refused("The grant client_credentials needs a client that authenticates.")
    types = sent.texts("response_types", ("code",) if "authorization_code" in grants else ())
    if set(types) - {"code"}:
        raise refused("Unsupported response type: a client that registers itself may have only the response type code.")
    if bool(types) != ("authorization_code" in grants):
        raise refused("The response type code needs the grant type authorization_code, and vice versa: send both or none.")
    return grants


def _redirects(sent: Metadata, grants: tuple[str, ...]) -> tuple[str, ...]:
    value = sent.members.get("redirect_uris", [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value) or len(value) > MOST_ADDRESSES:
        raise _bad_redirect(f"The redirect_uris must be a list of at most {MOST_ADDRESSES} strings.")
    if "authorization_code" in grants and not value:
        raise _bad_redirect("The grant authorization_code needs redirect_uris: the addresses to which users come back.")
    is_web = sent.members.get("application_type") == "web"
    for address in value:
        problem = address_problem(address, takes_native=not is_web)
        if problem:
            raise _bad_redirect(f"The address {address[:200]!r} {problem}.")
    return tuple(dict.fromkeys(value))


def _bad_redirect(reason: str) -> RequestRefused:
    return RequestRefused(RegistrationCase.INVALID_REDIRECT_URI, reason=reason)


def _addresses(sent: Metadata, name: str) -> tuple[str, ...]:
    addresses = sent.texts(name)
    for address in addresses[:MOST_ADDRESSES]:
        problem = address_problem(address)
        if problem:
            raise refused(f"The address {address[:200]!r} of {name} {problem}.")
    if len(addresses) > MOST_ADDRESSES:
        raise refused(f"The member {name} may have at most {MOST_ADDRESSES} addresses.")
    return addresses


def _link(sent: Metadata, name: str, *, takes_http: bool = False) -> str | None:
    """Return an https URL, None if absent."""
    address = sent.text(name)
    if not address:
        return None
    problem = address_problem(address, takes_native=False)
    if problem and not (takes_http and address.startswith("http://") and address_problem("https" + address[4:]) == ""):
        raise refused(f"The member {name} {problem}.")
    return address


def _name(sent: Metadata, redirects: tuple[str, ...]) -> str:
    name = " ".join(sent.text("client_name").split())
    if len(name) > _LONGEST_NAME or "<" in name or ">" in name or not name.isprintable():
        raise refused(f"The client_name must have at most {_LONGEST_NAME} characters that can be printed, without < or >.")
    host = urlsplit(redirects[0]).hostname if redirects else ""
    return name or host or "Registered application"


def _app_type(sent: Metadata, method: str, redirects: tuple[str, ...]) -> str:
    kind = sent.text("application_type")
    if kind not in ("", "web", "native"):
        raise refused("The application_type must be web or native.")
    if kind == "native" or (not kind and redirects and any(is_native(address) for address in redirects)):
        return "native"
    return "spa" if method == "none" else "regular_web"


def _algorithm(sent: Metadata, method: str) -> str:
    algorithm = sent.text("id_token_signed_response_alg", Client.RS256_ALGORITHM)
    has_secret = method in ("client_secret_basic", "client_secret_post")
    if algorithm in RSA_ALGORITHMS or (algorithm == SHARED and has_secret):
        return algorithm
    named = ", ".join(RSA_ALGORITHMS)
    raise refused(f"The id_token_signed_response_alg must be one of {named}, or {SHARED} for a client with a secret.")


def _keys(sent: Metadata, method: str) -> tuple[tuple[NewCredential, ...], tuple[NewCredential, ...]]:
    """Return the credentials that authenticate the client, and the credentials that verify its signed requests."""
    key_set, address = sent.members.get("jwks"), sent.members.get("jwks_uri")
    if key_set is not None and address is not None:
        raise refused("Send only one of the members jwks and jwks_uri.")
    if method == "tls_client_auth":
        text = sent.text("tls_client_auth_subject_dn")
        if not text or len(text) > _LONGEST_NAME * 4:
            raise refused("The method tls_client_auth needs tls_client_auth_subject_dn: the subject of the certificate.")
        return (subject(text),), signing_keys(key_set, algorithm=_algorithm_of_keys(sent)) if key_set is not None else ()
    if method == "self_signed_tls_client_auth":
        return certificates(key_set), ()
    if method == "private_key_jwt" and key_set is None:
        raise refused("The method private_key_jwt needs the public keys in jwks; this service does not read them from a jwks_uri.")
    keys = signing_keys(key_set, algorithm=_algorithm_of_keys(sent)) if key_set is not None else ()
    return (keys if method == "private_key_jwt" else ()), keys


def _algorithm_of_keys(sent: Metadata) -> str:
    """Return the algorithm for keys without the member `alg`."""
    named = {sent.text(name) for name in ("token_endpoint_auth_signing_alg", "request_object_signing_alg")} - {""}
    if len(named) > 1:
        raise refused(
            "token_endpoint_auth_signing_alg and request_object_signing_alg differ: name the algorithm in the member alg of each key of "
            "the jwks."
        )
    algorithm = next(iter(named), ALGORITHMS[0])
    if algorithm not in ALGORITHMS:
        raise refused(f"Unsupported signing algorithm. Expected one of {', '.join(ALGORITHMS)}.")
    return algorithm


def _settings(sent: Metadata, method: str, *, has_keys: bool) -> dict[str, Any]:
    """Return the settings by their wire names. None clears a setting of an earlier registration."""
    is_bound = sent.switch("dpop_bound_access_tokens")
    if sent.switch("tls_client_certificate_bound_access_tokens"):
        if method not in _CERTIFICATE_METHODS:
            raise refused("Certificate-bound tokens need a client that authenticates by a certificate: see token_endpoint_auth_method.")
        is_bound = True
    if sent.switch("require_pushed_authorization_requests") and method == "none":
        raise refused("A client without authentication cannot push its requests.")
    keys_address, logout_address = _link(sent, "jwks_uri", takes_http=settings.OUTBOUND_ALLOW_HTTP), _logout_address(sent)
    if sent.switch("require_signed_request_object") and not has_keys and not keys_address:
        raise refused("Signed requests need the keys that verify them: send jwks or jwks_uri.")
    found: dict[str, Any] = {
        "logo_uri": _link(sent, "logo_uri"),
        "initiate_login_uri": _link(sent, "initiate_login_uri"),
        "jwks_uri": keys_address,
        "oidc_logout": {"backchannel_logout_urls": [logout_address]} if logout_address else None,
        "require_pushed_authorization_requests": sent.switch("require_pushed_authorization_requests") or None,
        "require_proof_of_possession": is_bound or None,
        "authorization_details_types": _detail_types(sent),
    }
    if sent.switch("require_signed_request_object") and not has_keys:
        found["signed_request_object"] = {"required": True}
    return found


def _logout_in_frames(sent: Metadata, redirects: tuple[str, ...]) -> dict[str, Any]:
    """Return the members of OpenID Connect Front-Channel Logout 1.0, 2. The URL must have the origin of a callback."""
    address, takes_session = sent.text("frontchannel_logout_uri"), sent.switch("frontchannel_logout_session_required")
    problem = front_channel_problem(address, redirects) if address else None
    if problem or len(address) > _LONGEST_LINK or not address.isprintable():
        raise refused(f"The member frontchannel_logout_uri cannot be used. {problem or 'It is too long.'}")
    return {"frontchannel_logout_uri": address or None, "frontchannel_logout_session_required": takes_session or None}


def _detail_types(sent: Metadata) -> list[str] | None:
    """Return the types of authorization details that the client will use (RFC 9396, 10); None if it names no type."""
    types = sent.texts("authorization_details_types")
    if len(types) > MAX_TYPES or not all(TYPE.fullmatch(name) for name in types):
        raise refused(f"The authorization_details_types must be at most {MAX_TYPES} names without spaces or angle brackets.")
    return list(types) or None


def _logout_address(sent: Metadata) -> str | None:
    return _link(sent, "backchannel_logout_uri", takes_http=settings.OUTBOUND_ALLOW_HTTP)
