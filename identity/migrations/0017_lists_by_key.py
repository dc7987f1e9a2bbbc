from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Not atomic: the indexes are built concurrently, so that a running service can write to the tables.
    atomic = False

    dependencies = [
        ('identity', '0016_staff_factors'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='groupmember',
            index=models.Index(fields=['tenant', 'id'], name='identity_groupmember_listed'),
        ),
        AddIndexConcurrently(
            model_name='grouprole',
            index=models.Index(fields=['tenant', 'id'], name='identity_grouprole_listed'),
        ),
        AddIndexConcurrently(
            model_name='job',
            index=models.Index(fields=['tenant', 'created_at', 'id'], name='identity_job_listed'),
        ),
        AddIndexConcurrently(
            model_name='joberror',
            index=models.Index(fields=['job', 'row_number', 'id'], name='identity_joberror_listed'),
        ),
        AddIndexConcurrently(
            model_name='organizationconnection',
            index=models.Index(fields=['tenant', 'id'], name='identity_orgconnection_listed'),
        ),
        AddIndexConcurrently(
            model_name='organizationgrouprole',
            index=models.Index(fields=['tenant', 'id'], name='identity_orggrouprole_listed'),
        ),
        AddIndexConcurrently(
            model_name='organizationmember',
            index=models.Index(fields=['tenant', 'id'], name='identity_orgmember_listed'),
        ),
        AddIndexConcurrently(
            model_name='organizationmemberrole',
            index=models.Index(fields=['tenant', 'id'], name='identity_orgmemberrole_listed'),
        ),
        AddIndexConcurrently(
            model_name='userrole',
            index=models.Index(fields=['tenant', 'id'], name='identity_userrole_listed'),
        ),
    ]
