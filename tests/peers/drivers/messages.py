"""Changes the mail provider, mail templates, texts of prompts and languages with auth0-python. Prints the results."""

from __future__ import annotations

import json
import sys
from typing import Any

from auth0.management.client import Auth0  # type: ignore[import-untyped]  # not installed where types are checked
from auth0.management.core.api_error import ApiError  # type: ignore[import-untyped]  # as above

PASSWORD = "very-secret-1"
SERVER = {"smtp_host": "smtp.example.test", "smtp_port": 587, "smtp_user": "mailer", "smtp_pass": PASSWORD}


def refusal(call: Any, *arguments: Any, **named: Any) -> list[Any]:
    """Return the class, the status and the code of the error that a call raises, or an empty list if it succeeds."""
    try:
        call(*arguments, **named, request_options={"max_retries": 0})
    except ApiError as error:
        return [type(error).__name__, error.status_code, dict(error.body).get("errorCode")]
    return []


def provider(client: Any) -> dict[str, Any]:
    mails = client.emails.provider
    seen: dict[str, Any] = {"none": refusal(mails.get), "change without a row": refusal(mails.update, enabled=False)}
    made = mails.create(name="smtp", credentials=SERVER, default_from_address="shop@example.test", enabled=True)
    read = mails.get(fields="name,enabled,default_from_address,credentials", include_fields=True)
    seen["made"] = [read.name, read.enabled, read.default_from_address, read.credentials.smtp_host, read.credentials.smtp_port]
    seen["read equals created"] = made.credentials.dict() == read.credentials.dict()
    seen["contains the password"] = PASSWORD in f"{made.json()}{read.json()}"
    seen["created twice"] = refusal(mails.create, name="smtp", credentials=SERVER)
    seen["changed"] = mails.update(enabled=False).enabled
    seen["host after the change"] = mails.get(fields="credentials").credentials.smtp_host
    seen["other provider"] = refusal(mails.update, name="mailgun", credentials={"api_key": "k", "domain": "d"})
    seen["header injected"] = refusal(mails.update, default_from_address="a@example.test\r\nBcc: b@example.test")
    mails.delete()
    seen["gone"] = refusal(mails.get)
    return seen


def templates(client: Any) -> dict[str, Any]:
    texts = client.email_templates
    body = "<p>Hello {{ user.name }}, <a href='{{ url }}'>here</a></p>"
    written = {"body": body, "from_": "shop@example.test", "subject": "Hello", "syntax": "liquid", "enabled": True}
    seen: dict[str, Any] = {
        "none": refusal(texts.get, "verify_email"),
        "change without a row": refusal(texts.update, "verify_email", subject="x"),
    }
    made = texts.create(template="verify_email", url_lifetime_in_seconds=3600, result_url="https://example.com/done", **written)
    read = texts.get("verify_email")
    seen["read equals created"] = made.dict() == read.dict()
    seen["made"] = [read.template, read.body == body, read.from_, read.subject, read.syntax, read.url_lifetime_in_seconds, read.result_url]
    seen["created twice"] = refusal(texts.create, template="verify_email", **written)
    seen["changed"] = [texts.update("verify_email", subject="Welcome").subject, texts.get("verify_email").body == body]
    seen["replaced"] = texts.set("verify_email", template="verify_email", **{**written, "subject": "New"}).result_url
    seen["created by put"] = texts.set("reset_email", template="reset_email", **written).template
    seen["unsafe"] = refusal(texts.update, "verify_email", body="{{ user.__class__ }}{% include '/etc/passwd' %}")
    seen["unreadable"] = refusal(texts.update, "verify_email", body="{% if %}")
    seen["unknown"] = refusal(texts.get, "no_such_mail")
    return seen


def languages(client: Any) -> dict[str, Any]:
    settings, prompts = client.tenants.settings, client.prompts
    seen: dict[str, Any] = {"enabled": settings.update(enabled_locales=["en", "de", "ar"]).enabled_locales}
    seen["read"] = settings.get(fields="enabled_locales", include_fields=True).enabled_locales
    seen["without texts"] = refusal(settings.update, enabled_locales=["en", "sw"])
    seen["before a text is written"] = prompts.custom_text.get("login", "de")
    prompts.custom_text.set("login", "de", request={"login": {"title": "Willkommen"}})
    seen["written"] = prompts.custom_text.get("login", "de")
    seen["in another language"] = prompts.custom_text.get("login", "en")
    seen["unknown text"] = refusal(prompts.custom_text.set, "login", "de", request={"login": {"noSuchText": "x"}})
    seen["unknown language"] = refusal(prompts.custom_text.get, "login", "sw")
    seen["unknown prompt"] = refusal(prompts.custom_text.get, "no-such-prompt", "de")
    prompts.custom_text.set("login", "de", request={})
    seen["after the reset"] = prompts.custom_text.get("login", "de")
    seen["prompts"] = [prompts.get_settings().universal_login_experience, prompts.get_settings().identifier_first]
    return seen


def main() -> None:
    base_url, token, weak = sys.argv[1:]
    client, stranger = Auth0(base_url=base_url, token=token), Auth0(base_url=base_url, token=weak)
    seen = {"provider": provider(client), "templates": templates(client), "languages": languages(client)}
    seen["without the scope"] = {
        "provider": refusal(stranger.emails.provider.get),
        "templates": refusal(stranger.email_templates.get, "verify_email"),
        "texts": refusal(stranger.prompts.custom_text.get, "login", "de"),
        "settings": refusal(stranger.tenants.settings.update, enabled_locales=["en"]),
    }
    seen["without a token"] = {"provider": refusal(Auth0(base_url=base_url, token="nonsense").emails.provider.get)}
    sys.stdout.write(json.dumps(seen) + "\n")


if __name__ == "__main__":
    main()
