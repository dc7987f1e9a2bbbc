"""Bulk acts on rows of authapi that staff have selected in a list. Each bulk act calls a service function once for each row."""

from __future__ import annotations

from authapi.accounts import suspicion
from authapi.accounts.access import withdraw_consent
from authapi.accounts.user_blocks import lift_block
from authapi.login.new_browsers import forget_browser
from authapi.login.sessions import end_session
from authapi.models import (
    AddressBlock,
    ApiResource,
    Client,
    ClientCredential,
    ClientGrant,
    Consent,
    EdgeKey,
    InitialAccessToken,
    Initiator,
    KnownBrowser,
    LoginFailures,
    RefreshToken,
    Session,
    TokenExchangeProfile,
)
from authapi.services import client_credentials, client_grants, clients, edge_keys, initial_tokens, resource_changes, token_exchange
from authapi.tokens.revocation import revoke_refresh_tokens
from identity.services.bulk_acts import BulkAct, deletion_of_rows, register


def _end_session(row: Session) -> None:
    end_session(row, reason=Initiator.SESSION_REVOKED)


def revoke_token(row: RefreshToken) -> None:
    """Revoke all refresh tokens of the lineage of a token. Access tokens stay valid until they expire."""
    revoke_refresh_tokens(tenant_id=row.tenant_id, ids=[row.wire_id])


def _delete_credential(row: ClientCredential) -> None:
    # Staff may delete a credential that is in use, so that one step disables a leaked key. The management interface refuses such a
    # deletion.
    client_credentials.delete_credential(tenant_id=row.tenant_id, client_id=row.client.client_id, credential_id=row.pk, even_used=True)


END_SESSIONS = register(BulkAct("end", Session, "End selected sessions", "ended", "authapi.change_session", _end_session))
REVOKE_TOKENS = register(
    BulkAct("revoke", RefreshToken, "Revoke selected refresh tokens", "revoked", "authapi.change_refreshtoken", revoke_token)
)
WITHDRAW_CONSENTS = register(
    BulkAct("withdraw", Consent, "Withdraw selected consents", "withdrawn", "authapi.change_consent", withdraw_consent)
)
LIFT_BLOCKS = register(BulkAct("lift", LoginFailures, "Lift selected blocks", "lifted", "authapi.change_loginfailures", lift_block))
LIFT_ADDRESSES = register(
    BulkAct("lift", AddressBlock, "Lift selected blocks", "lifted", "authapi.change_addressblock", suspicion.lift_block)
)
FORGET_BROWSERS = register(
    BulkAct("forget", KnownBrowser, "Forget selected browsers", "forgotten", "authapi.change_knownbrowser", forget_browser)
)

deletion_of_rows(ApiResource, lambda row: resource_changes.delete_api_resource(tenant_id=row.tenant_id, resource_id=row.pk))
deletion_of_rows(ClientGrant, lambda row: client_grants.delete_client_grant(tenant_id=row.tenant_id, grant_id=row.pk))
deletion_of_rows(Client, lambda row: clients.delete_client(tenant_id=row.tenant_id, client_id=row.client_id))
deletion_of_rows(ClientCredential, _delete_credential)
deletion_of_rows(InitialAccessToken, lambda row: initial_tokens.delete_initial_token(tenant_id=row.tenant_id, token_id=row.pk))
deletion_of_rows(TokenExchangeProfile, lambda row: token_exchange.delete_profile(tenant_id=row.tenant_id, profile_id=row.pk))
deletion_of_rows(EdgeKey, lambda row: edge_keys.remove_edge_key(tenant_id=row.tenant_id, domain_id=row.domain_id))
