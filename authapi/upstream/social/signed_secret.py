"""Client secrets that the client signs itself, as Apple requires: JSON Web Tokens, signed with a downloaded key of the developer. Pure."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

# Lifetime of the secret. Apple accepts up to six months. The secret is signed for each request, so that a copy in a log expires soon.
LIFE_SECONDS = 300
_CURVE = "P-256"


class SigningKeyInvalid(ValueError):
    """The text is not a private key of the curve P-256."""


@dataclass(frozen=True)
class SigningKey:
    """The key of a developer account, with the ids of the key and of the account at the provider."""

    team_id: str
    key_id: str
    pem: str = field(repr=False)


def signed_secret(key: SigningKey, *, client_id: str, audience: str, now: float | None = None) -> str:
    """Return a client secret. Raises `SigningKeyInvalid`."""
    issued = int(time.time() if now is None else now)
    claims = {"iss": key.team_id, "iat": issued, "exp": issued + LIFE_SECONDS, "aud": audience, "sub": client_id}
    return jwt.encode({"alg": "ES256", "kid": key.key_id}, claims, check_key(key.pem), algorithms=["ES256"])


def check_key(pem: str) -> ECKey:
    """Return the key in a PEM text. Raises `SigningKeyInvalid`; its message does not quote the text."""
    # Pasted text often has white space around it.
    text = pem.strip()
    if not text.startswith("-----BEGIN"):
        raise SigningKeyInvalid
    try:
        key = ECKey.import_key(text)
        # `curve_name` raises `KeyError` for a curve without a name in RFC 7518.
        is_fitting = key.is_private and key.curve_name == _CURVE
    except (JoseError, ValueError, TypeError, KeyError) as error:
        raise SigningKeyInvalid from error
    if not is_fitting:
        raise SigningKeyInvalid
    return key
