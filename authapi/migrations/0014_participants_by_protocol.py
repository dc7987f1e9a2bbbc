"""A client can take part in one session with several protocols."""

from django.db import migrations, models

_NAME = "authapi_sessionclient_protocol"


class Migration(migrations.Migration):
    # The index is built while the service runs and users log in. PostgreSQL does this only outside a transaction.
    atomic = False

    dependencies = [("authapi", "0013_logins_of_any_protocol")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveConstraint(model_name="sessionclient", name="authapi_sessionclient_unique"),
                migrations.AddConstraint(
                    model_name="sessionclient",
                    constraint=models.UniqueConstraint(fields=("session", "client", "protocol"), name=_NAME),
                ),
            ],
            database_operations=[
                migrations.RunSQL(
                    f"CREATE UNIQUE INDEX CONCURRENTLY {_NAME} ON authapi_sessionclient (session_id, client_id, protocol)",
                    f"ALTER TABLE authapi_sessionclient DROP CONSTRAINT {_NAME}",
                ),
                migrations.RunSQL(
                    f"ALTER TABLE authapi_sessionclient ADD CONSTRAINT {_NAME} UNIQUE USING INDEX {_NAME}",
                    migrations.RunSQL.noop,
                ),
                migrations.RunSQL(
                    "ALTER TABLE authapi_sessionclient DROP CONSTRAINT authapi_sessionclient_unique",
                    "ALTER TABLE authapi_sessionclient ADD CONSTRAINT authapi_sessionclient_unique UNIQUE (session_id, client_id)",
                ),
            ],
        ),
    ]
