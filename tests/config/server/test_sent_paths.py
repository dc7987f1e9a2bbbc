"""Ids with slashes over real servers: each server passes the encoded path on unchanged."""

from __future__ import annotations

import http.client
import json

import pytest

from identity.models import Tenant
from tests.conformance.web_process import SERVERS, web_process
from tests.factories.authapi import access_token, global_client
from tests.factories.identity import make_connection, make_user
from tests.management import segment


@pytest.mark.parametrize("server", SERVERS)
def test_the_user_with_a_slash_in_the_id_is_found(tenant: Tenant, server: str) -> None:
    users = [make_user(connection=make_connection(tenant_id=tenant.pk), identifier=identifier) for identifier in ("a/b|c", "a%2Fb", "é")]
    headers = {"Host": f"{tenant.pk}.example.test", "Authorization": f"Bearer {access_token(tenant, global_client(tenant))}"}
    with web_process(server) as web:
        connection = http.client.HTTPConnection(*web.address, timeout=20)
        for user in users:
            connection.request("GET", f"/api/v2/users/{segment(user.user_id)}?fields=user_id", headers=headers)
            answer = connection.getresponse()
            assert (answer.status, json.loads(answer.read())) == (200, {"user_id": user.user_id})
        connection.close()
