"""The Content-Security-Policy of a page whose form is posted to an application: the URLs to which the form may be sent."""

from __future__ import annotations

import pytest
from django.test import RequestFactory

from authapi.login.browser import post_form


@pytest.mark.parametrize(
    ("is_secure", "address", "targets"),
    [
        (True, "https://sp.example.test/slo", "https:"),
        (True, "http://127.0.0.1:8080/slo", "https: http://127.0.0.1:8080"),
        # The application gets the response at 127.0.0.1:8080, and can redirect the browser to a third host.
        (False, "http://127.0.0.1:8080/slo", "https: http://127.0.0.1:8080 http:"),
        (False, "https://sp.example.test/slo", "https: http:"),
    ],
)
def test_only_a_host_with_plain_http_lets_forms_go_to_other_plain_http_addresses(is_secure: bool, address: str, targets: str) -> None:
    page = post_form(RequestFactory().get("/", secure=is_secure), address, {"SAMLRequest": "x"})
    assert f"form-action {targets};" in page["Content-Security-Policy"]
