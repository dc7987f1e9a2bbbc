"""Pages may use only files of the service, and no other site may show them in a frame."""

from __future__ import annotations

import pytest
from django.test import AsyncClient, Client
from django.urls import reverse

POLICY = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"


def test_a_page_of_the_console_has_the_complete_content_security_policy(committed_db: None) -> None:
    page = Client(headers={"host": "localhost"}).get(reverse("admin:login"))
    assert page.status_code == 200
    assert page["Content-Security-Policy"] == POLICY


@pytest.mark.asyncio
async def test_an_asynchronous_answer_has_the_complete_content_security_policy() -> None:
    answer = await AsyncClient(headers={"host": "localhost"}).get("/-/nothing")
    assert answer["Content-Security-Policy"] == POLICY
