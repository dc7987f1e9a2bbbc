"""Login through external providers by OpenID Connect, OAuth 2.0, SAML 2.0 and WS-Federation, where this service is the client.

The login page shows `buttons` and sends the browser to the address that `begin` returns. The browser returns to `/login/callback`.
"""

from __future__ import annotations

from authapi.upstream.choosing import buttons, connection_for_email, label_of, named_connection
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.federated_logout import federated_logout
from authapi.upstream.strategies import begin

__all__ = ["UpstreamFailed", "begin", "buttons", "connection_for_email", "federated_logout", "label_of", "named_connection"]
