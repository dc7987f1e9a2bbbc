"""Makes the access token of a login, and decides the kind, lifetime and audience of the token."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from authapi.grants.details import still_granted_details
from authapi.grants.entitlements import UserEntitlement, user_entitlement
from authapi.models import ApiResource
from authapi.tokens.claims import new_jti
from authapi.tokens.minting import Issue, organization_claims
from authapi.tokens.opaque_tokens import store_opaque_token
from authapi.tokens.signing import DEFAULT, SHARED, signature_of_api
from authapi.tokens.user_tokens import UserIssue

USERINFO_PATH = "userinfo"


def user_access(issue: UserIssue, entitlement: UserEntitlement, *, is_front_channel: bool = False) -> Issue:
    """Return the access token to issue. This function stores an opaque token, in the transaction of the caller; a JWT is not stored.

    With `is_front_channel`, the token passes through the address bar of a browser and has the API's lifetime for browsers.
    """
    resource = entitlement.resource
    seconds = _seconds(resource, is_front_channel=is_front_channel)
    signature = signature_of_api(resource, issue.client) if resource else DEFAULT
    # An API that knows the signing secret (HS256) could create its tokens itself, so these tokens are not valid at `/userinfo`.
    opens_profile = issue.is_sign_in and signature.algorithm != SHARED
    return Issue(
        subject=issue.user.user_id,
        audience=entitlement.audience,
        scopes=issue.scopes,
        grant=issue.grant,
        seconds=seconds,
        dialect=resource.token_dialect if resource else "",
        jti=new_jti(issue.lineage) if resource else "",
        userinfo=issue.host.issuer + USERINFO_PATH if opens_profile else "",
        permissions=entitlement.permissions,
        organization=organization_claims(issue.organization, issue.host.tenant_id),
        confirmation=issue.confirmation,
        signature=signature,
        further=issue.asked.token_claims if issue.asked else {},
        opaque="" if resource else store_opaque_token(issue, seconds=seconds),
    )


def still_granted(issue: UserIssue) -> tuple[UserIssue, UserEntitlement]:
    """Return the login with the scopes that are still granted, and the entitlement with these scopes. Raises `RequestRefused`.

    Scopes that were withdrawn since the user consented, or since the last refresh, are not issued.
    """
    entitlement = user_entitlement(
        host=issue.host,
        client=issue.client,
        user=issue.user,
        audience=issue.audience or issue.host.issuer + USERINFO_PATH,
        scope=" ".join(issue.scopes),
        organization=issue.organization,
    )
    # Usually no scope was withdrawn. In this case, the login is not copied, because copying its many members is slow.
    granted = issue if entitlement.scopes == issue.scopes else replace(issue, scopes=entitlement.scopes)
    return still_granted_details(granted, entitlement.resource) if issue.asked is not None else granted, entitlement


def ends_at(access: Issue) -> datetime:
    """Return the time at which a token that is issued now expires."""
    return timezone.now() + timedelta(seconds=access.seconds)


def _seconds(resource: ApiResource | None, *, is_front_channel: bool) -> int:
    if is_front_channel:
        for_web = resource.settings.get("token_lifetime_for_web") if resource else None
        return int(for_web or settings.ACCESS_TOKEN_WEB_SECONDS)
    return int((resource.token_lifetime if resource else None) or settings.ACCESS_TOKEN_SECONDS)
