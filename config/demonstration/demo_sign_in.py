"""A login for the demo: a registered web application that is not running, and a user."""

from __future__ import annotations

from authapi.models import Client, TenantSettings
from authapi.services.clients import create_client, raise_auth_version
from authapi.services.tenant_settings import update_tenant_settings
from identity.models import Connection, User
from identity.services.connections import change_enabled_clients
from identity.services.passwords import check_credential, set_password
from identity.services.users import create_user

# No server listens at this URL. The browser shows the URL with the code, which a developer can copy and exchange for tokens.
CALLBACK = "http://localhost:3000/callback"
_MARK = {"made_by": "make up for logins"}


def make_sign_in(*, tenant_id: str, client_secret: str, password: str) -> tuple[str, str]:
    """Create the application and the user, or reset what has changed. Returns client id and email address."""
    client = _application(tenant_id)
    if not client.secret_matches(client_secret):
        client.set_secret(client_secret)
        client.save(update_fields=["secret_digest", "sealed_secret", "updated"])
        raise_auth_version(client)
    _open_account_page(tenant_id)
    people = Connection.objects.of(tenant_id).filter(name="people").first()
    email = f"ada@{tenant_id}.example"
    if people is not None:
        change_enabled_clients(tenant_id=tenant_id, connection_id=people.pk, added=[client.client_id], removed=[])
        _user(people, email, password)
    return client.client_id, email


def _open_account_page(tenant_id: str) -> None:
    """Enable the account page of the demo, unless an administrator has configured it."""
    row = TenantSettings.objects.of(tenant_id).first()
    if row is None or "account_page" not in row.values:
        update_tenant_settings(tenant_id=tenant_id, changes={"account_page": {"enabled": True, "deletion": True}})


def _application(tenant_id: str) -> Client:
    client = Client.objects.of(tenant_id).filter(metadata__contains=_MARK).first()
    if client is not None:
        return client
    made, _ = create_client(
        tenant_id=tenant_id,
        name="Demo application",
        app_type="regular_web",
        grant_types=["authorization_code", "refresh_token"],
        redirect_uris=CALLBACK,
        post_logout_redirect_uris="http://localhost:3000/",
        metadata=_MARK,
    )
    return made


def _user(people: Connection, email: str, password: str) -> None:
    user = User.objects.of(people.tenant_id).filter(connection=people, email=email).first()
    if user is None:
        create_user(tenant_id=people.tenant_id, connection=people, email=email, email_verified=True, name="Ada", password=password)
        return
    credential = getattr(user, "password_credential", None)
    if credential is None or not check_credential(credential, password):
        set_password(user, password)
