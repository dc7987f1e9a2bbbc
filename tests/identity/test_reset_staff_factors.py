"""`manage.py reset_staff_factors`, which removes the factors of a staff account whose owner can no longer use them."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from django.core.management import CommandError, call_command

from identity.factors.staff_factors import has_factors, recovery_codes_left
from identity.models import AuditEntry, Staff, Tenant
from tests.factories.admin import browser_of, new_staff
from tests.factories.staff_factors import add_app


@pytest.fixture
def staff(tenant: Tenant) -> Staff:
    staff = new_staff(tenant)
    add_app(staff, "Lost phone")
    return Staff.objects.get(pk=staff.pk)


def answering(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Make `input` return `text`, as if an operator typed it at the prompt of the command."""
    answer: Callable[[str], str] = lambda _prompt: text  # noqa: E731  (a short stand-in for a terminal)
    monkeypatch.setattr("builtins.input", answer)


def test_the_command_changes_nothing_if_the_operator_does_not_type_the_address(staff: Staff, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, "yes")
    with pytest.raises(CommandError, match="Nothing was changed"):
        call_command("reset_staff_factors", staff.email, stdout=io.StringIO())

    assert has_factors(staff)


def test_an_unknown_account_is_reported(committed_db: None) -> None:
    with pytest.raises(CommandError, match="no staff account"):
        call_command("reset_staff_factors", "nobody@example.test", "--yes")


def test_the_command_deletes_factors_codes_and_sessions_after_the_operator_types_the_address(
    staff: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = browser_of(staff)
    said = io.StringIO()
    answering(monkeypatch, staff.email)
    call_command("reset_staff_factors", staff.email.upper(), reason="Called back on the known number.", stdout=said)

    assert "Lost phone" in said.getvalue()
    assert not has_factors(staff)
    assert recovery_codes_left(staff) == 0
    assert session.get("/admin/").status_code == 302
    noted = AuditEntry.objects.get(object_id=str(staff.pk), act="Reset the second factors", tenant_id=staff.tenant_id)
    assert noted.reason == "Called back on the known number."


def test_an_account_without_factors_is_not_changed(tenant: Tenant) -> None:
    said = io.StringIO()
    call_command("reset_staff_factors", new_staff(tenant).email, stdout=said)

    assert "has no second factor" in said.getvalue()
