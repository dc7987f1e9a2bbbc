"""Authorization codes: the authorization endpoint issues them, and a client exchanges each of them once. Rows store digests only."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from authapi.compliance.levels import has, level_of
from authapi.compliance.rules import LONGEST_CODE_SECONDS, SHORT_CODES
from authapi.models import AuthorizationCode, Client
from authapi.tokens.bindings import KEY
from authapi.tokens.user_tokens import CodeParameters, UserIssue
from foundation.secrets.random_secrets import digest_of, new_secret


def issue_code(issue: UserIssue, parameters: CodeParameters, *, until: datetime | None = None) -> str:
    """Issue a code for a login and return it. The row stores only the digest of the code.

    `until` is set in the hybrid flow only. There, the authorization response contains an access token beside the code, and `until` is the
    expiry of this token.
    """
    code = new_secret()
    AuthorizationCode(
        tenant_id=issue.host.tenant_id,
        code=digest_of(code),
        application=issue.client,
        user=issue.user,
        expires=timezone.now() + timedelta(seconds=_seconds(issue.client)),
        redirect_uri=parameters.redirect_uri,
        is_redirect_uri_given=parameters.is_redirect_uri_given,
        code_challenge=parameters.code_challenge,
        code_challenge_method=parameters.code_challenge_method,
        scope=" ".join(issue.scopes),
        nonce=issue.nonce,
        audience=issue.audience,
        session=issue.session,
        sid=issue.session.pk if issue.session else "",
        organization=issue.organization,
        lineage=issue.lineage,
        auth_time=issue.auth_time,
        methods=list(issue.methods),
        confirmation={KEY: parameters.dpop_jkt} if parameters.dpop_jkt else None,
        asked=issue.asked.state if issue.asked else None,
        issued_until=until,
    ).save(force_insert=True)
    return code


def locked_code(*, tenant_id: str, code: str) -> AuthorizationCode | None:
    """Return the row of a code with its related rows, locked until the transaction ends; None for an unknown code.

    A second exchange of the code waits for the lock, and then finds that the code is used.
    """
    rows = AuthorizationCode.objects.of(tenant_id).select_related("user__connection", "session", "organization")
    return rows.select_for_update(of=("self",), no_key=True).filter(code=digest_of(code)).first()


def _seconds(client: Client) -> int:
    seconds = int(settings.AUTHORIZATION_CODE_SECONDS)
    return min(seconds, LONGEST_CODE_SECONDS) if has(level_of(client.settings), SHORT_CODES) else seconds
