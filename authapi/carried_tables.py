"""How a move of a tenant to another installation copies the tables of the authentication interface."""

from __future__ import annotations

from authapi.accounts.handed_tickets import password_place
from authapi.accounts.passwordless.messages import code_place
from authapi.login.sessions import participant_place, upstream_place
from authapi.tokens.refresh_tokens import successor_place
from identity.messages.queue import message_place
from identity.models import Job
from identity.moving.carrying import carry, sealed_member, sealed_names, sealed_text

_BEGINS_AGAIN = (
    "Not copied: a row is valid for only a few minutes, and its digests and encrypted values depend on ids of this "
    "installation. Users must start again."
)


def declare() -> None:
    """Declare the tables of `authapi`. Also declare the encrypted contents of jobs of `identity`: code of both apps encrypts these
    contents."""
    carry(
        "authapi",
        left_behind=dict.fromkeys(
            ("FactorChallenge", "LoginTransaction", "LogoutTransaction", "PasskeyCeremony", "PasswordlessCode", "PushedRequest"),
            _BEGINS_AGAIN,
        ),
        sealed={
            "AccountTicket": (sealed_member("parameters", "sealed_password", lambda row: password_place(row.tenant_id, row.user_id)),),
            "ApiResource": (sealed_text("sealed_signing_secret", lambda row: row._secret_place),),
            "Client": (sealed_text("sealed_secret", lambda row: row._secret_place),),
            "Invitation": (sealed_text("sealed_ticket", lambda row: row._place),),
            "RefreshToken": (sealed_text("sealed_successor", successor_place),),
            "SamlKey": (sealed_text("sealed_private_key", lambda row: row._place),),
            "Session": (sealed_text("sealed_upstream", upstream_place),),
            "SessionClient": (sealed_text("sealed_state", participant_place),),
            "SigningKey": (sealed_text("sealed_private_key", lambda row: row._place),),
            "TenantSettings": (sealed_names("sealed_values", lambda row, name: row._place(name)),),
            "identity.Job": (sealed_member("parameters", "sealed", _place_of_contents),),
        },
    )


def _place_of_contents(row: Job) -> str:
    return code_place(row) if row.type == Job.Type.PASSWORDLESS_CODE else message_place(row)
