"""Account links: one per action, server and user, for accounts that this service created or found (docs/adr/0072). Pure.

A link stores the id of the user's account, the names and keys sent to it, and the positions between which it is valid. A link
authorizes a write only if the server's current answer confirms the link (see `ScimClient`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}
# This value is stored instead of the creation time if the server returns several creation times for the same verified account. The creation
# times of such a server cannot distinguish accounts.
UNSTABLE = "unstable"
_LONGEST_TIME = 64
# Origins of a link that an administrator has confirmed. The confirmation stores "adopted". A run that started before the confirmation may
# then overwrite this origin with "by name".
_CONFIRMED = ("adopted", "by name")
# Longer ids are not stored, because they cannot be requested; see `user_path`.
LONGEST_ID = 512


@dataclass(frozen=True)
class Link:
    """One row: the account `remote_id` on `server` belongs to the user, from the event at `birth` until the event at `ended`.

    Positions are positions in the tenant's log. `remote_id` is empty until an account is known. `doubt` is the position of the
    event whose create request got no answer. A suspect authorizes no write until an administrator confirms the link.
    """

    tenant_id: str
    action_id: str
    server: str
    user_id: str
    remote_id: str = ""
    birth: int = 0
    ended: int | None = None
    position: int = 0
    user_names: tuple[str, ...] = ()
    user_name: str = ""
    keys: tuple[str, ...] = ()
    is_keyed: bool = False
    created_there: str = ""
    is_missing: bool = False
    doubt: int | None = None
    origin: str = ""
    is_suspect: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the link may authorize a write."""
        return bool(self.remote_id) and self.ended is None and not self.is_suspect

    @property
    def has_witness(self) -> bool:
        """Whether a user name or a creation time is known. Each of them distinguishes the account from a later account with the same id."""
        return bool(self.user_names or self.user_name) or self.created_there not in ("", UNSTABLE)

    @property
    def takes_first_read(self) -> bool:
        """Whether an administrator confirmed the link without a witness.

        Then the next read of the account with the linked id supplies the witness: the name and the creation time of the account.
        """
        return self.is_open and self.origin in _CONFIRMED and not self.has_witness

    def has_sent(self, user_name: str) -> bool:
        """Tell whether this name was sent to the account."""
        return any(same_name(user_name, sent) for sent in (*self.user_names, self.user_name) if sent)

    def document(self) -> dict[str, Any]:
        """Return the row as JSON."""
        return asdict(self)


def server_of(base_url: str) -> str:
    """Return the key of a server in links: 32 hexadecimal digits, the digest of its normalized base URL."""
    parts = urlsplit(base_url.strip())
    port = parts.port if parts.port != _DEFAULT_PORTS.get(parts.scheme.lower()) else None
    host = (parts.hostname or "").lower().rstrip(".") + (f":{port}" if port else "")
    return hashlib.sha256(f"{parts.scheme.lower()}://{host}{parts.path.rstrip('/')}".encode()).hexdigest()[:32]


def same_name(one: str, other: str) -> bool:
    """Compare two user names, without regard to the case of A to Z. Full Unicode folding would merge names that a server distinguishes."""
    return _folded(one) == _folded(other)


def creation_of(resource: Mapping[str, Any]) -> str:
    """Return `meta.created` of a resource as the server returned it (RFC 7643, 3.1), or an empty string."""
    meta = resource.get("meta")
    created = meta.get("created") if isinstance(meta, dict) else None
    return created if isinstance(created, str) and len(created) <= _LONGEST_TIME else ""


def _folded(name: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)
