"""Second factors of logins: policies, challenges, and browsers in which the second factor is skipped for a while."""

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models


def _same_tenant(table: str, column: str, target: str) -> migrations.RunSQL:
    name = f"authapi_{table}_{column}_same_tenant"
    return migrations.RunSQL(
        f"ALTER TABLE authapi_{table} ADD CONSTRAINT {name} FOREIGN KEY (tenant_id, {column})"
        f" REFERENCES {target} (tenant_id, id) DEFERRABLE INITIALLY DEFERRED",
        f"ALTER TABLE authapi_{table} DROP CONSTRAINT {name}",
    )


class Migration(migrations.Migration):

    dependencies = [
        ('authapi', '0027_signing_algorithms'),
        ('identity', '0028_factors_of_users'),
    ]

    operations = [
        migrations.AddField(
            model_name='tenantsettings',
            name='second_factors',
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
        migrations.CreateModel(
            name='OrganizationSecondFactors',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('policy', models.CharField(choices=[('never', 'Never'), ('on-request', 'When the application asks, or the user has turned it on'), ('new-device', 'In browsers that the user has not used before'), ('always', 'Always')], max_length=16)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('organization', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='identity.organization')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='identity.tenant')),
            ],
            options={
                'ordering': ('id',),
                'abstract': False,
                'base_manager_name': 'all_tenants',
                'default_manager_name': 'all_tenants',
            },
            managers=[
                ('all_tenants', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='FactorChallenge',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('bound_to', models.CharField(editable=False, max_length=80)),
                ('purpose', models.CharField(help_text='`use`, or `enroll` for a factor that the answer confirms.', max_length=16)),
                ('code_digest', models.CharField(blank=True, editable=False, max_length=160)),
                ('handle_digest', models.CharField(blank=True, editable=False, max_length=64)),
                ('challenge', models.BinaryField(blank=True, default=b'')),
                ('failures', models.PositiveSmallIntegerField(default=0, help_text='Wrong codes tried while this one counted.')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
                ('factor', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='identity.enrolledfactor')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='identity.tenant')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='identity.user')),
            ],
            options={
                'ordering': ('id',),
                'abstract': False,
                'base_manager_name': 'all_tenants',
                'default_manager_name': 'all_tenants',
                'indexes': [models.Index(fields=['tenant', 'bound_to', '-id'], name='authapi_factorchallenge_bound'), models.Index(fields=['expires_at'], name='authapi_factorchallenge_over')],
            },
            managers=[
                ('all_tenants', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='RememberedBrowser',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(editable=False, max_length=64)),
                ('ip', models.GenericIPAddressField(blank=True, null=True)),
                ('user_agent', models.CharField(blank=True, max_length=500)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('last_used_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='identity.tenant')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='identity.user')),
            ],
            options={
                'ordering': ('id',),
                'abstract': False,
                'base_manager_name': 'all_tenants',
                'default_manager_name': 'all_tenants',
                'indexes': [models.Index(fields=['user', '-id'], name='authapi_rememberedbrowser_user'), models.Index(fields=['expires_at'], name='authapi_rememberedbrowser_over')],
                'constraints': [models.UniqueConstraint(fields=('digest', 'tenant'), name='authapi_rememberedbrowser_unique')],
            },
            managers=[
                ('all_tenants', django.db.models.manager.Manager()),
            ],
        ),
        # The log codes of second factors are longer than the earlier log codes.
        migrations.AlterField("signin", "type", models.CharField(max_length=32)),
        migrations.AlterField("administrativeline", "type", models.CharField(max_length=32)),
        _same_tenant("factorchallenge", "user_id", "identity_user"),
        _same_tenant("rememberedbrowser", "user_id", "identity_user"),
        _same_tenant("organizationsecondfactors", "organization_id", "identity_organization"),
    ]
