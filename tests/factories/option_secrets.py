"""Options of a strategy with a distinct value at every path that may contain a secret."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from joserfc.jwk import ECKey

from identity.options.schemas import schema_of
from identity.options.schemas.nodes import joined, secret_paths

# Options that some strategies require.
_NEEDED = {"client_id": "readable-client", "pingFederateBaseUrl": "https://ping.example.test"}


# Options that accept only values of a specific format.
_MADE: dict[str, Callable[[], str]] = {"app_secret": lambda: ECKey.generate_key("P-256", private=True).as_pem(private=True).decode()}


def hidden_text() -> str:
    return f"hidden-{secrets.token_hex(8)}"


def options_with_secrets(strategy: str, *, is_database: bool = False) -> tuple[dict[str, Any], dict[str, str]]:
    """Return options, and the secret text at each path: declared secrets, unknown members of several types, and misplaced secrets."""
    paths = [path.replace("*", "any-name") for path in secret_paths(schema_of(strategy, is_database=is_database))]
    hidden = {path: _MADE.get(path, hidden_text)() for path in (*paths, "unknown", "unknownObject", "unknownList", "icon_url")}
    values: dict[str, Any] = dict(hidden)
    values["unknownObject"] = {"inner": [{"deep": hidden["unknownObject"]}]}
    values["unknownList"] = [hidden["unknownList"]]
    values["icon_url"] = f"https://user:{hidden['icon_url']}@icons.example.test/a.png"
    return joined(_NEEDED, values), hidden
