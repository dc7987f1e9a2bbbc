"""What a browser is told about where a form of ours may lead."""

from __future__ import annotations

import pytest
from django.test import RequestFactory

from authapi.login.browser import post_form


@pytest.mark.parametrize(
    ("is_secure", "address", "targets"),
    [
        (True, "https://sp.example.test/slo", "https:"),
        (True, "http://127.0.0.1:8080/slo", "https: http://127.0.0.1:8080"),
        # The application answers to this host, and an answer leads from here to a third one.
        (False, "http://127.0.0.1:8080/slo", "https: http://127.0.0.1:8080 http:"),
        (False, "https://sp.example.test/slo", "https: http:"),
    ],
)
def test_what_follows_a_form_may_do_without_tls_where_this_host_does(is_secure: bool, address: str, targets: str) -> None:
    page = post_form(RequestFactory().get("/", secure=is_secure), address, {"SAMLRequest": "x"})
    assert f"form-action {targets};" in page["Content-Security-Policy"]
