"""DPoP proofs (RFC 9449).

A proof shows that the client has the key to which its token is bound. So a leaked token is useless without this key.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey

from events.client.failures import NoToken

_ALGORITHM = "ES256"
_ASKS_AGAIN = (400, 401)


class Prover:
    """One key, and the last nonce from the service."""

    def __init__(self, key: ECKey) -> None:
        self._key = key
        self._public = {name: value for name, value in key.as_dict(private=False).items() if name in ("kty", "crv", "x", "y")}
        self._nonce = ""

    def proof(self, method: str, url: str, *, token: str = "") -> str:
        """Return a new proof for one request; `token` is the access token of the request."""
        parts = urlsplit(url)
        # RFC 9449, 4.2: `htu` has no query and no fragment.
        claims: dict[str, str | int] = {
            "jti": secrets.token_urlsafe(16),
            "htm": method,
            "htu": f"{parts.scheme}://{parts.netloc}{parts.path}",
            "iat": int(time.time()),
        }
        if token:
            claims["ath"] = base64.urlsafe_b64encode(hashlib.sha256(token.encode()).digest()).decode().rstrip("=")
        if self._nonce:
            claims["nonce"] = self._nonce
        header = {"typ": "dpop+jwt", "alg": _ALGORITHM, "jwk": self._public}
        return jws.serialize_compact(header, json.dumps(claims).encode(), self._key, algorithms=[_ALGORITHM])

    def has_learned(self, status: int, nonce: str) -> bool:
        """Store the nonce of a response; tell whether the client must repeat the request with this nonce (RFC 9449, 8)."""
        is_new = bool(nonce) and nonce != self._nonce
        self._nonce = nonce or self._nonce
        return is_new and status in _ASKS_AGAIN


def new_prover() -> Prover:
    """Return a prover with a new key, which exists only in the memory of this process."""
    return Prover(ECKey.generate_key("P-256"))


def prover_of(path: Path) -> Prover:
    """Return a prover with the private key in a file: EC P-256, in PEM or as a JWK. Raises `NoToken`."""
    try:
        key = ECKey.import_key(_content(path.read_text(encoding="ascii")))
    except (OSError, UnicodeError) as error:
        raise NoToken(f"The key file cannot be read: {getattr(error, 'strerror', None) or type(error).__name__}.") from error
    except (JoseError, ValueError, TypeError) as error:
        raise NoToken("The key file contains no private EC key in PEM or as a JWK.") from error
    if not key.is_private or key.curve_name != "P-256":
        raise NoToken("The key file must contain a private key on the curve P-256.")
    return Prover(key)


def _content(text: str) -> str | dict[str, Any]:
    found: str | dict[str, Any] = json.loads(text) if text.lstrip().startswith("{") else text
    return found
