"""What a browser carries back to the client: code, access token and id token in every combination (Core 1.0, 3.1 to 3.3)."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from authapi.grants.user_access import ends_at, still_granted, user_access
from authapi.tokens.authorization_codes import issue_code
from authapi.tokens.id_tokens import id_token
from authapi.tokens.minting import Issue, minted
from authapi.tokens.user_tokens import CodeParameters, UserIssue


def front_channel(
    issue: UserIssue, *, response_types: frozenset[str], code_parameters: CodeParameters | None, state: str | None
) -> dict[str, Any]:
    """Return the members of an authorization response for any set of `code`, `token` and `id_token`, `state` left to the caller.

    `code_parameters` come with a code. There is never a refresh token here, and none of the members is stored in clear.
    Raises `RequestRefused` where the user may no longer have what was asked.
    """
    members: dict[str, Any] = {}
    access: Issue | None = None
    with transaction.atomic():
        if "token" in response_types:
            issue, entitlement = still_granted(issue)
            access = user_access(issue, entitlement, is_front_channel=True)
        if "code" in response_types:
            if code_parameters is None:
                raise ValueError("A code needs its parameters.")
            members["code"] = issue_code(issue, code_parameters, until=ends_at(access) if access else None)
    if access is not None:
        members["access_token"] = minted(access, client=issue.client, host=issue.host)
        members |= {"token_type": "Bearer", "expires_in": access.seconds, "scope": " ".join(access.scopes)}
    if "id_token" in response_types:
        beside = {name: members.get(name) for name in ("access_token", "code")}
        # FAPI 1.0 Advanced, 5.1.1: the state is tied to a response that has both.
        beside["state"] = state if "code" in response_types else None
        members["id_token"] = id_token(issue, front_channel=beside)
    return members
