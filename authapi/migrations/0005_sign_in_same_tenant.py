"""Composite foreign keys: all rows of a login belong to one tenant."""

from django.db import migrations

_RELATIONS = (
    ("authapi_session", "user_id", "identity_user"),
    ("authapi_session", "connection_id", "identity_connection"),
    ("authapi_sessionclient", "session_id", "authapi_session"),
    ("authapi_sessionclient", "client_id", "authapi_client"),
    ("authapi_authorizationrequest", "client_id", "authapi_client"),
    ("authapi_consent", "user_id", "identity_user"),
    ("authapi_consent", "client_id", "authapi_client"),
    ("authapi_clientcredential", "client_id", "authapi_client"),
    ("authapi_loginfailures", "connection_id", "identity_connection"),
    ("authapi_accountticket", "user_id", "identity_user"),
    ("authapi_authorizationcode", "user_id", "identity_user"),
    ("authapi_authorizationcode", "application_id", "authapi_client"),
    ("authapi_refreshtoken", "user_id", "identity_user"),
    ("authapi_refreshtoken", "application_id", "authapi_client"),
    ("authapi_accesstoken", "user_id", "identity_user"),
    ("authapi_accesstoken", "application_id", "authapi_client"),
)


def _add(table: str, column: str, target: str) -> str:
    return (
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_same_tenant FOREIGN KEY (tenant_id, {column})"
        f" REFERENCES {target} (tenant_id, id) DEFERRABLE INITIALLY DEFERRED"
    )


def _drop(table: str, column: str, target: str) -> str:
    return f"ALTER TABLE {table} DROP CONSTRAINT {table}_{column}_same_tenant"


class Migration(migrations.Migration):
    dependencies = [("authapi", "0004_sign_in")]
    operations = [migrations.RunSQL(_add(*relation), _drop(*relation)) for relation in _RELATIONS]
