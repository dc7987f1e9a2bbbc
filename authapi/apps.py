from django.apps import AppConfig


class AuthapiConfig(AppConfig):
    name = "authapi"
    verbose_name = "Authentication"

    def ready(self) -> None:
        from django.db.models.signals import post_delete, pre_delete  # noqa: PLC0415  (models are loaded only now)

        from authapi.accounts.account_changes import end_what_rested_on_it, end_with_identity  # noqa: PLC0415  (models are loaded only now)
        from authapi.accounts.password_changes import end_what_it_began  # noqa: PLC0415  (models are loaded only now)
        from authapi.login.protocol import register  # noqa: PLC0415  (models are loaded only now)
        from authapi.login.sessions import end_with_user  # noqa: PLC0415  (models are loaded only now)
        from authapi.looks.mails import mail_looks  # noqa: PLC0415  (models are loaded only now)
        from authapi.protocols import PROTOCOLS  # noqa: PLC0415  (models are loaded only now)
        from authapi.services.administrative_log import note_work  # noqa: PLC0415  (models are loaded only now)
        from authapi.services.staff_lines import note_entry  # noqa: PLC0415  (models are loaded only now)
        from authapi.upstream.option_judges import JUDGES  # noqa: PLC0415  (models are loaded only now)
        from foundation.hooks import account_changed, audit_noted, password_changed, tenant_looks, work_ends  # noqa: PLC0415  (models are loaded only now)
        from identity.options.judges import let_judge  # noqa: PLC0415  (models are loaded only now)
        from identity.purging import cover  # noqa: PLC0415  (models are loaded only now)

        for protocol in PROTOCOLS:
            register(protocol)
        self._answer_identity()
        cover("authapi", are_credentials=True)
        tenant_looks.fill(mail_looks)
        for strategies, judge in JUDGES:
            let_judge(strategies, judge)
        pre_delete.connect(end_with_user, sender="identity.User", dispatch_uid="authapi.end_with_user")
        post_delete.connect(end_with_identity, sender="identity.LinkedIdentity", dispatch_uid="authapi.end_with_identity")
        password_changed.connect(end_what_it_began, dispatch_uid="authapi")
        account_changed.connect(end_what_rested_on_it, dispatch_uid="authapi")
        audit_noted.connect(note_entry, dispatch_uid="authapi.staff_lines")
        work_ends.connect(note_work, dispatch_uid="authapi.administrative_log")

    @staticmethod
    def _answer_identity() -> None:
        """Tell the app below what only the settings of tenants know."""
        from authapi.tenant_settings import languages_of  # noqa: PLC0415  (models are loaded only now)
        from identity.languages import let_tenants_enable  # noqa: PLC0415  (models are loaded only now)

        let_tenants_enable(languages_of)
