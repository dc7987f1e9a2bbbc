"""Attacks on codes that applications request: guessing, flooding, locking users out, and codes of another client, recipient or tenant."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import time_machine
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from authapi.accounts.attempts import LoginRefused
from authapi.accounts.passwordless import codes
from authapi.accounts.passwordless.addresses import Address, Channel
from authapi.accounts.passwordless.limits import Place
from authapi.accounts.passwordless.login import CodeAttempt, log_in_with_code
from authapi.accounts.passwordless.starting import Wanted, start
from authapi.edge.rate_figures import CODE_GUESSES, CODE_GUESSES_FROM_PLACE, CODES, CODES_FROM_PLACE
from authapi.models import PasswordlessCode
from authapi.services.clients import create_client, update_client
from identity.models import Tenant, User
from identity.services.connections import create_connection, update_connection
from identity.services.users import create_user
from tests.authapi.accounts.logging_in import suspect
from tests.authapi.memory import forget_all
from tests.authapi.passwordless.conftest import ADA, NUMBER, Door, new_door, set_options
from tests.authapi.passwordless.messages import jobs_of, last_code, wrong
from tests.authapi.passwordless.test_grant import WRONG, challenge, outcome
from tests.deadlines import eventually
from tests.factories.admin import new_tenant
from tests.factories.authapi import host_of
from tests.factories.sign_in import CALLBACK

ATTACKER = "198.51.100.9"


def public(tenant: Tenant) -> Door:
    """Create an application without a secret. Its requests are not authenticated, so the service counts the requests by IP address."""
    return new_door(tenant, token_endpoint_auth_method="none")


# --- Guessing ---------------------------------------------------------------------------------------------------------


def test_wrong_codes_block_the_ip_address_but_not_the_user(door: Door) -> None:
    code = door.code()
    answers = [door.redeem(wrong(code, by=by), address=ATTACKER).status for by in range(1, 8)]
    assert answers == [403] * 5 + [429] * 2
    assert door.redeem(code, address=ATTACKER).status == 429
    assert door.redeem(code).status == 200


def test_a_new_code_allows_no_further_guesses(door: Door) -> None:
    for by in range(1, 6):
        door.redeem(wrong(door.code() if by < 3 else "000000", by=by), address=ATTACKER)
    code = door.code(address="203.0.113.1")
    assert door.redeem(code, address=ATTACKER).json()["error"] == "too_many_attempts"


def test_many_auth_sessions_for_one_email_address_share_a_limit_of_guesses(door: Door) -> None:
    statuses = []
    for _ in range(3):
        session = challenge(door).json()
        code = last_code(door.tenant.pk)
        statuses += [door.redeem(wrong(code, by=by), username=None, realm=None, **session).status for by in (1, 2)]
    assert statuses == [403] * 5 + [429]


def test_guesses_at_one_email_address_from_many_ip_addresses_are_limited_too(door: Door) -> None:
    code = door.code()
    statuses = [door.redeem(wrong(code, by=number + 1), address=f"203.0.113.{number}").status for number in range(21)]
    assert statuses == [403] * 20 + [429]


def test_ten_wrong_guesses_from_any_ip_addresses_invalidate_a_code(door: Door) -> None:
    code = door.code()
    for number in range(10):
        assert door.redeem(wrong(code, by=number + 1), address=f"203.0.113.{number}").status == 403
    assert outcome(door.redeem(code)) == WRONG
    assert door.redeem(door.code()).status == 200


def test_each_of_several_simultaneous_guesses_is_counted(door: Door) -> None:
    code, barrier, statuses = door.code(), threading.Barrier(8), []

    def guess(by: int) -> None:
        barrier.wait(timeout=10)
        statuses.append(door.redeem(wrong(code, by=by), address=ATTACKER).status)

    threads = [threading.Thread(target=guess, args=(by,)) for by in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert sorted(statuses) == [403] * 5 + [429] * 3


def waiting_for_a_name() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return bool(cursor.fetchone()[0])


def test_a_guess_waits_for_the_previous_guess_at_the_same_address(door: Door) -> None:
    code, statuses = door.code(), []
    second = threading.Thread(target=lambda: statuses.append(door.redeem(code).status))
    with transaction.atomic():
        codes.hold(codes.Scope(door.email, Address(Channel.EMAIL, ADA), door.client))
        second.start()
        eventually(waiting_for_a_name)
        assert statuses == []
    second.join(timeout=30)
    assert statuses == [200]


def test_an_ip_address_with_guesses_at_many_accounts_is_refused_for_every_account(door: Door) -> None:
    suspect(door.tenant.pk, enabled=True, stage={"pre-login": {"max_attempts": 3, "rate": 864_000}})
    names = [f"user{number}@example.test" for number in range(4)]
    statuses = [door.redeem("000000", username=name, address=ATTACKER).status for name in names]
    assert statuses == [403] * 3 + [429]
    code = door.code()
    assert door.redeem(code, address=ATTACKER).json()["error"] == "too_many_attempts"
    assert door.redeem(code).status == 200


def test_ten_wrong_guesses_invalidate_a_code_even_without_brute_force_protection(door: Door) -> None:
    set_options(door.email, brute_force_protection=False)
    code = door.code()
    assert [door.redeem(wrong(code, by=by)).status for by in range(1, 11)] == [403] * 10
    assert outcome(door.redeem(code)) == WRONG


# --- Codes of another client, address or tenant -----------------------------------------------------------------------


def test_a_code_of_another_client_is_refused(door: Door) -> None:
    other, secret = create_client(tenant_id=door.tenant.pk, name="Other", grant_types=door.client.grant_types, redirect_uris=CALLBACK)
    enabled = [door.client.client_id, other.client_id]
    update_connection(tenant_id=door.tenant.pk, connection_id=door.email.pk, changes={"enabled_clients": enabled})
    code = door.code()
    assert outcome(door.redeem(code, client_id=other.client_id, client_secret=secret)) == WRONG
    assert door.redeem(code).status == 200


def test_a_code_of_another_connection_is_refused(door: Door) -> None:
    second = create_connection(
        tenant_id=door.tenant.pk, name="second", strategy="email", enabled_clients=[door.client.client_id], options={}
    )
    code = door.code()
    assert outcome(door.redeem(code, realm=second.name)) == WRONG


def test_a_code_of_another_tenant_is_refused(door: Door) -> None:
    other = new_door(new_tenant())
    assert outcome(other.redeem(door.code())) == WRONG


def test_a_code_digest_copied_to_another_address_is_invalid(door: Door) -> None:
    code = door.code()
    door.code(email="eve@example.test")
    mine, victims = PasswordlessCode.objects.of(door.tenant.pk).order_by("pk")
    PasswordlessCode.objects.of(door.tenant.pk).filter(pk=victims.pk).update(code_digest=mine.code_digest)
    assert outcome(door.redeem(code, username="eve@example.test")) == WRONG


def test_a_code_of_a_session_is_valid_only_in_this_session(door: Door) -> None:
    challenge(door)
    code = last_code(door.tenant.pk)
    assert outcome(door.redeem(code)) == WRONG
    other = challenge(door, email="eve@example.test").json()
    assert outcome(door.redeem(code, username=None, realm=None, **other)) == WRONG


def test_an_auth_session_ignores_another_account_that_the_request_names(door: Door) -> None:
    session = challenge(door, email="eve@example.test").json()
    answer = door.redeem(last_code(door.tenant.pk), username=ADA, **session)
    assert answer.status == 200
    assert User.objects.of(door.tenant.pk).get().email == "eve@example.test"


def test_an_auth_session_of_another_client_is_unknown(door: Door) -> None:
    session = challenge(door).json()
    other, secret = create_client(tenant_id=door.tenant.pk, name="Other", grant_types=door.client.grant_types, redirect_uris=CALLBACK)
    proof = {"client_id": other.client_id, "client_secret": secret}
    answer = door.redeem(last_code(door.tenant.pk), username=None, realm=None, **session, **proof)
    assert answer.status == 400


def test_removing_a_connection_from_the_client_ends_its_auth_sessions(door: Door) -> None:
    session = challenge(door).json()
    update_connection(tenant_id=door.tenant.pk, connection_id=door.email.pk, changes={"enabled_clients": []})
    forget_all()
    assert door.redeem(last_code(door.tenant.pk), username=None, realm=None, **session).status == 403


# --- Flooding ---------------------------------------------------------------------------------------------------------


def test_one_ip_address_cannot_use_up_the_messages_of_a_user(door: Door) -> None:
    statuses = [door.start(address=ATTACKER).status for _ in range(7)]
    assert statuses == [200] * 5 + [429] * 2
    assert door.start(address="203.0.113.1").status == 200


def test_many_ip_addresses_can_request_at_most_ten_messages_to_one_number(door: Door) -> None:
    asked = {"connection": "sms", "email": None, "phone_number": NUMBER}
    statuses = [door.start(address=f"203.0.113.{number}", **asked).status for number in range(12)]
    assert statuses == [200] * 10 + [429] * 2
    assert len(jobs_of(door.tenant.pk)) == 10
    with time_machine.travel(time.time() + 86_400):
        statuses = [door.start(address=f"203.0.114.{number}", **asked).status for number in range(12)]
    assert statuses.count(200) == 10


def test_other_spellings_of_an_address_share_the_limit_of_messages(door: Door) -> None:
    statuses = [
        door.start(email=name, address=ATTACKER).status
        for name in (ADA, "ADA@example.test", "Ada@Example.Test ", ADA, ADA, " ADA@EXAMPLE.TEST")
    ]
    assert statuses == [200] * 5 + [429]


def test_one_ip_address_can_request_at_most_fifty_messages_to_all_email_addresses_together(tenant: Tenant) -> None:
    door = public(tenant)
    statuses = [door.start(email=f"user{number}@example.test", address=ATTACKER).status for number in range(51)]
    assert statuses == [200] * 50 + [429]
    refused = door.start(email="last@example.test", address=ATTACKER)
    assert refused.json()["error"] == "too_many_requests"
    assert int(refused.headers["retry-after"]) > 0


def test_an_authenticated_application_may_request_codes_for_many_users_from_one_ip_address(door: Door) -> None:
    statuses = {door.start(email=f"user{number}@example.test").status for number in range(55)}
    assert statuses == {200}


def test_guesses_are_counted_for_the_ip_address_that_a_trusted_application_forwards(door: Door) -> None:
    update_client(
        tenant_id=door.tenant.pk, client_id=door.client.client_id, changes={"settings": {"is_token_endpoint_ip_header_trusted": True}}
    )
    forget_all()
    code = door.code()
    for by in range(1, 6):
        door.redeem(wrong(code, by=by), headers={"auth0-forwarded-for": ATTACKER})
    assert door.redeem(code, headers={"auth0-forwarded-for": ATTACKER}).status == 429
    assert door.redeem(code, headers={"auth0-forwarded-for": "203.0.113.5"}).status == 200


# --- Whether an account exists ----------------------------------------------------------------------------------------


def shapes_of(work: Callable[[], Any]) -> list[str]:
    """Return the SQL statements that a call runs, without their values. Statements that only fill caches are left out."""
    forget_all()
    with CaptureQueriesContext(connection) as queries, suppress(LoginRefused):
        work()
    texts = [re.sub(r"'[^']*'|s\d+_x\d+", "?", re.split(r" WHERE | VALUES ", query["sql"])[0]) for query in queries.captured_queries]
    return [text for text in texts if "authapi_tenantsettings" not in text and "identity_tenant" not in text]


def attempt(door: Door, name: str) -> CodeAttempt:
    address = Address(Channel.EMAIL, name)
    return CodeAttempt(host_of(door.tenant), door.client, door.email, address, "000000", Place("192.0.2.1"))


def test_a_wrong_code_runs_the_same_statements_whether_or_not_the_account_exists(door: Door) -> None:
    create_user(tenant_id=door.tenant.pk, connection=door.email, email=ADA)
    door.code()
    door.code(email="eve@example.test")
    known = shapes_of(lambda: log_in_with_code(attempt(door, ADA)))
    unknown = shapes_of(lambda: log_in_with_code(attempt(door, "eve@example.test")))
    assert known == unknown
    assert known
    assert not any("identity_user" in text for text in known)


def test_requests_for_codes_run_the_same_statements_for_existing_and_unknown_accounts(door: Door) -> None:
    connection = set_options(door.email, disable_signup=True)
    create_user(tenant_id=door.tenant.pk, connection=connection, email=ADA)

    def ask(name: str) -> None:
        start(Wanted(host_of(door.tenant), door.client, connection, Address(Channel.EMAIL, name), Place("192.0.2.1")))

    known, unknown = shapes_of(lambda: ask(ADA)), shapes_of(lambda: ask("eve@example.test"))
    assert known == unknown
    assert known
    assert not any("identity_user" in text for text in known)


@pytest.mark.parametrize("most", [codes._MOST_FAILURES])
def test_a_code_allows_more_wrong_guesses_than_one_ip_address_may_make(most: int) -> None:
    assert most > CODE_GUESSES_FROM_PLACE.size
    assert CODE_GUESSES_FROM_PLACE.seconds > CODE_GUESSES.seconds
    assert CODES_FROM_PLACE.seconds > CODES.seconds
    assert CODES_FROM_PLACE.size < CODES.size
