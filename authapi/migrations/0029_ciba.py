"""Requests that users approve in another browser (CIBA), and the secret of the webhook that notifies users."""

import django.db.models.deletion
import django.db.models.manager
import uuid
from django.db import migrations, models


_TABLE = "authapi_cibarequest"
_RELATIONS = (("user_id", "identity_user"), ("application_id", "authapi_client"))


def _add(column: str, target: str) -> str:
    return (
        f"ALTER TABLE {_TABLE} ADD CONSTRAINT {_TABLE}_{column}_same_tenant FOREIGN KEY (tenant_id, {column})"
        f" REFERENCES {target} (tenant_id, id) DEFERRABLE INITIALLY DEFERRED"
    )


def _drop(column: str) -> str:
    return f"ALTER TABLE {_TABLE} DROP CONSTRAINT {_TABLE}_{column}_same_tenant"


class Migration(migrations.Migration):

    dependencies = [
        ("authapi", "0028_second_factors"),
        ('identity', '0027_tickets_with_a_way_back'),
    ]

    operations = [
        migrations.AddField(
            model_name='tenantsettings',
            name='sealed_values',
            field=models.JSONField(blank=True, db_default={}, default=dict, editable=False),
        ),
        migrations.CreateModel(
            name='CibaRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('audience', models.CharField(blank=True, help_text='Empty: an opaque token for the profile.', max_length=600)),
                ('lineage', models.UUIDField(default=uuid.uuid4, editable=False)),
                ('auth_time', models.DateTimeField(blank=True, null=True)),
                ('methods', models.JSONField(blank=True, default=list, help_text='How the user proved who they are.')),
                ('confirmation', models.JSONField(blank=True, help_text='`cnf`: what the tokens are bound to.', null=True)),
                ('asked', models.JSONField(blank=True, editable=False, help_text='What was asked for beside scopes, and granted; null for logins that ask for nothing more.', null=True)),
                ('issued_jti', models.CharField(blank=True, help_text='The access token that was issued with it.', max_length=64)),
                ('issued_until', models.DateTimeField(blank=True, null=True)),
                ('auth_req_id', models.CharField(editable=False, max_length=64)),
                ('link_digest', models.CharField(editable=False, max_length=64)),
                ('status', models.CharField(choices=[('pending', 'Waits for the user'), ('approved', 'Approved'), ('denied', 'Denied')], default='pending', max_length=16)),
                ('scope', models.TextField(blank=True)),
                ('acr_values', models.CharField(blank=True, max_length=1024)),
                ('binding_message', models.CharField(max_length=64)),
                ('channel', models.CharField(blank=True, help_text='How the user is notified.', max_length=16)),
                ('interval', models.PositiveSmallIntegerField(default=5)),
                ('last_checked', models.DateTimeField(blank=True, null=True)),
                ('created', models.DateTimeField(auto_now_add=True)),
                ('expires', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, help_text='When the client got its tokens.', null=True)),
                ('initial_ip', models.GenericIPAddressField(blank=True, null=True)),
                ('initial_country', models.CharField(blank=True, help_text='Where the edge saw the sender, ISO 3166-1.', max_length=2)),
                ('approved_ip', models.GenericIPAddressField(blank=True, help_text='The browser in which the user answered.', null=True)),
                ('application', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to="authapi.client")),
                ('organization', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='identity.organization')),
                ('session', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='authapi.session')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='identity.tenant')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='identity.user')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'all_tenants',
                'default_manager_name': 'all_tenants',
                'indexes': [models.Index(fields=['user', 'expires'], name='authapi_cibarequest_user'), models.Index(fields=['application', 'expires'], name='authapi_cibarequest_client'), models.Index(fields=['lineage'], name='authapi_cibarequest_lineage'), models.Index(fields=['expires'], name='authapi_cibarequest_expired')],
                'constraints': [models.UniqueConstraint(fields=('auth_req_id',), name='authapi_cibarequest_id_unique'), models.UniqueConstraint(fields=('link_digest',), name='authapi_cibarequest_link_unique')],
            },
            managers=[
                ('all_tenants', django.db.models.manager.Manager()),
            ],
        ),
        *(migrations.RunSQL(_add(column, target), _drop(column)) for column, target in _RELATIONS),
    ]
