from __future__ import annotations

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # The indexes are built while the service runs and users log in. PostgreSQL does this only outside a transaction.
    atomic = False

    dependencies = [("authapi", "0007_credentials_count_where_named")]

    operations = [
        AddIndexConcurrently(
            model_name="signin",
            index=models.Index(fields=["tenant", "-created_at"], condition=models.Q(is_success=False), name="authapi_signin_failed"),
        ),
        AddIndexConcurrently(
            model_name="signin",
            index=models.Index(fields=["-created_at"], condition=models.Q(is_success=False), name="authapi_signin_failed_all"),
        ),
        AddIndexConcurrently(
            model_name="clientcredential",
            index=models.Index(fields=["expires_at"], condition=models.Q(expires_at__isnull=False), name="authapi_credential_expiry"),
        ),
    ]
