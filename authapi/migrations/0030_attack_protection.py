"""Blocked addresses, known browsers, and notices to administrators about attacks."""

import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('authapi', '0029_ciba'),
        ('identity', '0029_attack_protection'),
    ]

    operations = [
        migrations.CreateModel(
            name='AddressBlock',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('address', models.CharField(help_text='An IPv4 address, or the /64 network of IPv6 addresses.', max_length=45)),
                ('stage', models.CharField(max_length=32)),
                ('blocked_at', models.DateTimeField()),
                ('last_refused_at', models.DateTimeField()),
                ('ends_at', models.DateTimeField(help_text='When an attempt is given back at the latest.')),
                ('is_refused', models.BooleanField(help_text='False where the tenant only wants to be told.')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='identity.tenant')),
            ],
            options={
                'verbose_name_plural': 'blocked addresses',
                'ordering': ('id',),
                'abstract': False,
                'base_manager_name': 'all_tenants',
                'default_manager_name': 'all_tenants',
                'indexes': [models.Index(fields=['tenant', 'id'], name='authapi_addressblock_listed'), models.Index(fields=['ends_at'], name='authapi_addressblock_expired')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'address', 'stage'), name='authapi_addressblock_unique')],
            },
            managers=[
                ('all_tenants', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='AttackNotice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('leaked_passwords', 'Leaked Passwords'), ('blocked_addresses', 'Blocked Addresses')], max_length=24)),
                ('since', models.DateTimeField(blank=True, null=True)),
                ('due_at', models.DateTimeField(blank=True, null=True)),
                ('sent_at', models.DateTimeField(blank=True, null=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='identity.tenant')),
            ],
            options={
                'ordering': ('id',),
                'abstract': False,
                'base_manager_name': 'all_tenants',
                'default_manager_name': 'all_tenants',
                'indexes': [models.Index(fields=['due_at'], name='authapi_attacknotice_due')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'kind'), name='authapi_attacknotice_unique')],
            },
            managers=[
                ('all_tenants', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='KnownBrowser',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(editable=False, max_length=64)),
                ('created_at', models.DateTimeField()),
                ('last_seen_at', models.DateTimeField()),
                ('told_at', models.DateTimeField(blank=True, help_text='When the user was told by mail of the first login.', null=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='identity.tenant')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='identity.user')),
            ],
            options={
                'ordering': ('id',),
                'abstract': False,
                'base_manager_name': 'all_tenants',
                'default_manager_name': 'all_tenants',
                'indexes': [models.Index(fields=['tenant', 'id'], name='authapi_knownbrowser_listed'), models.Index(fields=['last_seen_at'], name='authapi_knownbrowser_expired')],
                'constraints': [models.UniqueConstraint(fields=('user', 'digest'), name='authapi_knownbrowser_unique')],
            },
            managers=[
                ('all_tenants', django.db.models.manager.Manager()),
            ],
        ),
    ]
