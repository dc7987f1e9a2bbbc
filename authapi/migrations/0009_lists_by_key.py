from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # The indexes are built while the service runs and writes to the tables. PostgreSQL does this only outside a transaction.
    atomic = False

    dependencies = [
        ('authapi', '0008_indexes_of_the_start_page'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='accountticket',
            index=models.Index(fields=['tenant', 'created_at', 'id'], name='authapi_accountticket_listed'),
        ),
        AddIndexConcurrently(
            model_name='loginfailures',
            index=models.Index(fields=['tenant', 'id'], name='authapi_loginfailures_listed'),
        ),
        AddIndexConcurrently(
            model_name='organizationclientgrant',
            index=models.Index(fields=['tenant', 'id'], name='authapi_orggrant_listed'),
        ),
        AddIndexConcurrently(
            model_name='refreshtoken',
            index=models.Index(fields=['tenant', 'id'], name='authapi_refreshtoken_listed'),
        ),
        AddIndexConcurrently(
            model_name='rolepermission',
            index=models.Index(fields=['tenant', 'id'], name='authapi_rolepermission_listed'),
        ),
        AddIndexConcurrently(
            model_name='sessionclient',
            index=models.Index(fields=['tenant', 'id'], name='authapi_sessionclient_listed'),
        ),
        AddIndexConcurrently(
            model_name='userpermission',
            index=models.Index(fields=['tenant', 'id'], name='authapi_userpermission_listed'),
        ),
    ]
