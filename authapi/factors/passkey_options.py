"""The passkey settings of a connection: whether its users can log in and sign up with passkeys, and what the login pages offer.

Both the tenant and the connection must enable passkeys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from authapi.factors.settings import factor_settings
from identity.models import Connection


def takes_passkeys(connection: Connection) -> bool:
    """Tell whether users of a connection can log in with passkeys: both the tenant and the connection must enable them."""
    methods = _object(connection.options.get("authentication_methods"))
    is_on = _object(methods.get("passkey")).get("enabled") is True
    return is_on and connection.is_database and factor_settings(connection.tenant_id).has_passkeys


def takes_passkey_sign_ups(connection: Connection) -> bool:
    """Tell whether users can sign up with a passkey at a connection."""
    return takes_passkeys(connection) and not connection.options.get("disable_signup")


def passkey_connections(connections: Iterable[Connection]) -> list[Connection]:
    """Return the connections whose users can log in with passkeys."""
    return [connection for connection in connections if takes_passkeys(connection)]


def has_button(connection: Connection) -> bool:
    """Tell whether the login page has a button for passkeys (`passkey_options.challenge_ui`)."""
    return _options(connection).get("challenge_ui") != "autofill"


def has_autofill(connection: Connection) -> bool:
    """Tell whether the browser offers passkeys in the identifier field."""
    return _options(connection).get("challenge_ui") != "button"


def offers_after_login(connection: Connection) -> bool:
    """Tell whether a page after a login with a password offers to create a passkey."""
    is_on = _options(connection).get("progressive_enrollment_enabled") is not False
    return is_on and takes_passkeys(connection) and factor_settings(connection.tenant_id).offers_passkeys


def _options(connection: Connection) -> Mapping[str, Any]:
    return _object(connection.options.get("passkey_options"))


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
