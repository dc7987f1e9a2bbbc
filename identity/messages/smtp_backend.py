"""Django's SMTP backend for the server of a tenant: connects by the rules of outbound requests, and requires TLS."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.mail.backends.smtp import EmailBackend

from foundation.outbound.smtp import checked_smtp, smtp_tls

# Time limit of one conversation; the job of the mail has one minute.
_SECONDS = 20.0
TLS_PORT = 465


class TlsMissing(OSError):
    """The mail server offers no TLS."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class ProviderBackend(EmailBackend):
    """Uses TLS from the start on port 465 and STARTTLS on other ports. Sends without TLS only if outbound plain http is allowed."""

    def __init__(self, *, host: str, port: int, username: str, password: str) -> None:
        super().__init__(host=host, port=port, username=username, password=password, use_ssl=port == TLS_PORT, use_tls=False)

    def open(self) -> bool:
        if self.connection:
            return False
        connection = checked_smtp(
            self.host, self.port, is_tls=self.use_ssl, seconds=_SECONDS, own_name=settings.PLATFORM_HOST.partition(":")[0]
        )
        try:
            self._secure_and_log_in(connection)
        except BaseException:
            connection.close()
            raise
        self.connection = connection
        return True

    def _secure_and_log_in(self, connection: Any) -> None:
        connection.ehlo_or_helo_if_needed()
        if not self.use_ssl:
            if connection.has_extn("starttls"):
                connection.starttls(context=smtp_tls())
            elif not settings.OUTBOUND_ALLOW_HTTP:
                raise TlsMissing
        if self.username:
            connection.login(self.username, self.password)
