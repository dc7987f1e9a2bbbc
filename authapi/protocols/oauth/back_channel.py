"""Sends logout tokens to clients, one attempt at a time, through `outbound_session`."""

from __future__ import annotations

import time
from urllib.parse import urlencode

from authapi.protocols.oauth.logout_notices import claim_notice, fail_notice, settle_notice
from authapi.tokens.logout_tokens import can_sign, logout_token
from foundation.outbound.outcomes import OutboundError
from foundation.outbound.session import outbound_session

_SECONDS = 8.0
_HEADERS = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
# Status codes of temporary refusals. After any other 4xx, the notice is not sent again: the client would refuse it again.
_PASSING = frozenset({408, 425, 429})


def send_notice(notice_id: int) -> None:
    """Make one attempt to notify a client of a logout. Does nothing if the notice was sent, or if another worker has claimed it.

    1. Claim the notice, so that no other worker sends it for half a minute.
    2. Create a token and post it, outside of a transaction.
    3. Delete the notice if it was delivered; otherwise postpone it or give it up.
    """
    claim = claim_notice(notice_id)
    if claim is None:
        return
    if not can_sign(claim.client):
        fail_notice(claim.notice, why="its tokens are signed with its secret, which was not kept.", is_final=True)
        return
    body = urlencode({"logout_token": logout_token(claim.notice, claim.client)}).encode()
    try:
        answer = outbound_session().send("POST", claim.notice.url, headers=_HEADERS, body=body, deadline=time.monotonic() + _SECONDS)
    except OutboundError as error:
        fail_notice(claim.notice, why=str(error))
        return
    if 200 <= answer.status < 300:
        settle_notice(claim.notice)
        return
    is_final = 400 <= answer.status < 500 and answer.status not in _PASSING
    fail_notice(claim.notice, why=f"it answered {answer.status}.", is_final=is_final)
