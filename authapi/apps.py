from django.apps import AppConfig


class AuthapiConfig(AppConfig):
    name = "authapi"
    verbose_name = "Authentication"

    def ready(self) -> None:
        from authapi.sign_in.password_changes import end_what_it_began  # noqa: PLC0415  (models are loaded only now)
        from identity.hooks import password_changed  # noqa: PLC0415  (models are loaded only now)
        from identity.purging import cover  # noqa: PLC0415  (models are loaded only now)

        cover("authapi", are_credentials=True)
        password_changed.connect(end_what_it_began, dispatch_uid="authapi")
