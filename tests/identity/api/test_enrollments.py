from __future__ import annotations

from identity.models import EnrolledFactor, Tenant, User
from tests.management import Management, segment


def test_a_user_has_no_enrollments_while_no_login_asks_for_a_factor(api: Management, tenant: Tenant, ada: User) -> None:
    EnrolledFactor.objects.of(tenant.pk).create(tenant=tenant, user=ada, kind="phone", address="+15550100")
    answer = api.get(f"users/{segment(ada.user_id)}/enrollments")
    assert (answer.status, answer.json) == (200, [])


def test_enrollments_of_an_unknown_user_name_the_user(api: Management) -> None:
    answer = api.get("users/database%7Cffffffffffffffffffffffff/enrollments")
    assert (answer.status, answer.json["errorCode"]) == (404, "inexistent_user")
    assert api.get("users/nobody/enrollments").status == 400
