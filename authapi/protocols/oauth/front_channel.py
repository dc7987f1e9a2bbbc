"""What a browser carries back to the client, made by the engine's response types (`authapi.protocols.oauth.response_types`)."""

from __future__ import annotations

from typing import Any

from authapi.protocols.oauth.engine import server
from authapi.protocols.oauth.engine_request import EngineRequest, engine_name
from authapi.tokens.user_tokens import CodeParameters, UserIssue


def front_channel(
    issue: UserIssue, *, response_types: frozenset[str], code_parameters: CodeParameters | None, state: str | None
) -> dict[str, Any]:
    """Return the members of an authorization response for any set of `code`, `token` and `id_token`, `state` left to the caller.

    `code_parameters` come with a code. There is never a refresh token here, and none of the members is stored in clear.
    Raises `RequestRefused` where the user may no longer have what was asked.
    """
    request = EngineRequest()
    request.host, request.client, request.client_id = issue.host, issue.client, issue.client.client_id
    request.response_type, request.state = engine_name(response_types), state
    request.login, request.code_parameters = issue, code_parameters
    return server().answer_authorization(request)
