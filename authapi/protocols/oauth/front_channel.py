"""Collects the parameters that the browser sends to the client. The classes in `authapi.protocols.oauth.response_types` create them."""

from __future__ import annotations

from typing import Any

from authapi.protocols.oauth.engine import server
from authapi.protocols.oauth.engine_request import EngineRequest, engine_name
from authapi.tokens.user_tokens import CodeParameters, UserIssue


def front_channel(
    issue: UserIssue, *, response_types: frozenset[str], code_parameters: CodeParameters | None, state: str | None
) -> dict[str, Any]:
    """Return the members of the authorization response for a combination of `code`, `token` and `id_token`. The caller adds `state` to
    them.

    If the combination contains `code`, `code_parameters` must be given. The response never has a refresh token. The service stores no
    member of the response in plain text. Raises `RequestRefused` if the client may no longer get the requested members for the user.
    """
    request = EngineRequest()
    request.host, request.client, request.client_id = issue.host, issue.client, issue.client.client_id
    request.response_type, request.state = engine_name(response_types), state
    request.login, request.code_parameters = issue, code_parameters
    return server().answer_authorization(request)
