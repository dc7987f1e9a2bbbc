from django.apps import AppConfig
from django.conf import settings


class AuthapiConfig(AppConfig):
    name = "authapi"
    verbose_name = "Authentication"

    def ready(self) -> None:
        from django.db.models.signals import post_delete  # noqa: PLC0415  (models are not loaded before)

        from authapi.accounts.account_changes import end_what_rested_on_it, end_with_identity  # noqa: PLC0415  (models are not loaded before)
        from authapi.accounts.password_changes import end_what_it_began  # noqa: PLC0415  (models are not loaded before)
        from authapi.login.protocol import register  # noqa: PLC0415  (models are not loaded before)
        from authapi.looks.mails import mail_looks  # noqa: PLC0415  (models are not loaded before)
        from authapi.protocols import PROTOCOLS  # noqa: PLC0415  (models are not loaded before)
        from authapi.services.administrative_log import note_work  # noqa: PLC0415  (models are not loaded before)
        from authapi.services.staff_lines import note_entry  # noqa: PLC0415  (models are not loaded before)
        from foundation.hooks import (  # noqa: PLC0415  (models are not loaded before)
            account_changed,
            audit_noted,
            password_changed,
            tenant_looks,
            work_ends,
        )
        from identity.purging import cover  # noqa: PLC0415  (models are not loaded before)

        for protocol in PROTOCOLS:
            register(protocol)
        self._answer_identity()
        self._travel()
        cover("authapi", are_credentials=True)
        tenant_looks.fill(mail_looks)
        self._judge_connections()
        self._end_sessions_of_deleted_users()
        post_delete.connect(end_with_identity, sender="identity.LinkedIdentity", dispatch_uid="authapi.end_with_identity")
        password_changed.connect(end_what_it_began, dispatch_uid="authapi")
        account_changed.connect(end_what_rested_on_it, dispatch_uid="authapi")
        self._tell_of_addresses()
        self._hear_of_factors()
        audit_noted.connect(note_entry, dispatch_uid="authapi.staff_lines")
        work_ends.connect(note_work, dispatch_uid="authapi.administrative_log")

    @staticmethod
    def _travel() -> None:
        """Declare how a move of a tenant to another installation copies the tables."""
        from authapi import carried_tables  # noqa: PLC0415  (models are loaded only now)

        carried_tables.declare()

    @staticmethod
    def _end_sessions_of_deleted_users() -> None:
        from django.db.models.signals import pre_delete  # noqa: PLC0415  (models are loaded only now)

        from authapi.login.sessions import end_with_user, end_with_users  # noqa: PLC0415  (models are loaded only now)
        from foundation.hooks import rows_leave  # noqa: PLC0415  (models are loaded only now)
        from identity.models import User  # noqa: PLC0415  (models are loaded only now)

        pre_delete.connect(end_with_user, sender=User, dispatch_uid="authapi.end_with_user")
        rows_leave.connect(end_with_users, sender=User, dispatch_uid="authapi.end_with_users")

    @staticmethod
    def _tell_of_addresses() -> None:
        from authapi.accounts.address_notices import tell_former_address  # noqa: PLC0415  (models are loaded only now)
        from foundation.hooks import account_changed  # noqa: PLC0415  (models are loaded only now)

        account_changed.connect(tell_former_address, dispatch_uid="authapi.address_notices")

    @staticmethod
    def _hear_of_factors() -> None:
        """Connect the receivers that revoke access and mail users when second factors change."""
        from authapi.accounts.factor_changes import end_what_rested_on_factors  # noqa: PLC0415  (models are not loaded before)
        from authapi.factors.notices import tell_of_change  # noqa: PLC0415  (models are not loaded before)
        from foundation.hooks import factors_changed  # noqa: PLC0415  (models are not loaded before)

        factors_changed.connect(end_what_rested_on_factors, dispatch_uid="authapi")
        factors_changed.connect(tell_of_change, dispatch_uid="authapi.factor_notices")

    @staticmethod
    def _answer_identity() -> None:
        """Give the app `identity` the functions that read tenant settings, because `identity` cannot import this app."""
        from authapi.accounts.leaked_passwords import is_refused  # noqa: PLC0415  (models are not loaded before)
        from authapi.services.notifiers import target_of  # noqa: PLC0415  (models are not loaded before)
        from authapi.tenant_settings import languages_of  # noqa: PLC0415  (models are not loaded before)
        from identity.breaches.tenant_rule import let_tenants_refuse  # noqa: PLC0415  (models are not loaded before)
        from identity.languages import let_tenants_enable  # noqa: PLC0415  (models are not loaded before)
        from identity.messages.hooks import let_tenants_be_told  # noqa: PLC0415  (models are not loaded before)

        let_tenants_enable(languages_of)
        let_tenants_be_told(target_of)
        let_tenants_refuse(is_refused)

    @staticmethod
    def _judge_connections() -> None:
        """Give the app `identity` the functions that check connection options. Raises an error if `PROVIDER_ADDRESSES` is invalid."""
        from authapi.upstream.option_judges import JUDGES  # noqa: PLC0415  (models are not loaded before)
        from authapi.upstream.social.known_providers import check_addresses  # noqa: PLC0415  (models are not loaded before)
        from identity.options.judges import let_judge  # noqa: PLC0415  (models are not loaded before)

        check_addresses(settings.PROVIDER_ADDRESSES)
        for strategies, judge in JUDGES:
            let_judge(strategies, judge)
