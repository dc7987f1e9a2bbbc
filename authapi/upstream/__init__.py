"""Login by a provider elsewhere: OpenID Connect connections, where this service is the client (OpenID Connect Core 1.0, 3.1).

The login page shows `buttons`, sends the browser to what `begin` returns, and `/login/callback` brings it back.
"""

from authapi.upstream.choosing import buttons, connection_for_email, named_connection
from authapi.upstream.failures import UpstreamFailed
from authapi.upstream.login import begin
from authapi.upstream.logout import federated_logout_address

__all__ = ["UpstreamFailed", "begin", "buttons", "connection_for_email", "federated_logout_address", "named_connection"]
