from django.apps import AppConfig


class AuthapiConfig(AppConfig):
    name = "authapi"
    verbose_name = "Authentication"

    def ready(self) -> None:
        from identity.purging import cover  # noqa: PLC0415  (models are loaded only now)

        cover("authapi", are_credentials=True)
