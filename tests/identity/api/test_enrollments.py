from __future__ import annotations

from foundation.timestamps import wire_time
from identity.models import EnrolledFactor, Tenant, User
from tests.management import Management, segment


def test_enrollments_contain_no_full_phone_number_and_no_unconfirmed_enrollment(api: Management, tenant: Tenant, ada: User) -> None:
    rows = EnrolledFactor.objects.of(tenant.pk)
    phone = rows.create(tenant=tenant, user=ada, kind="phone", address="+15550100")
    app = rows.create(tenant=tenant, user=ada, kind="totp", name="Old phone")
    rows.create(tenant=tenant, user=ada, kind="email", address="ada@example.test", is_confirmed=False)
    for kind in ("passkey", "recovery-code"):
        rows.create(tenant=tenant, user=ada, kind=kind)
    answer = api.get(f"users/{segment(ada.user_id)}/enrollments")
    assert answer.status == 200
    shown = {"status": "confirmed", "name": "XXXXX0100", "identifier": "XXXXX0100", "phone_number": "XXXXX0100", "auth_method": "sms"}
    assert answer.json == [
        {"id": phone.device, "type": "phone", **shown, "enrolled_at": wire_time(phone.created_at)},
        {
            "id": app.device,
            "status": "confirmed",
            "type": "totp",
            "name": "Old phone",
            "auth_method": "authenticator",
            "enrolled_at": wire_time(app.created_at),
        },
    ]


def test_the_enrollments_of_an_unknown_user_are_not_found(api: Management) -> None:
    answer = api.get("users/database%7Cffffffffffffffffffffffff/enrollments")
    assert (answer.status, answer.json["errorCode"]) == (404, "inexistent_user")
    assert api.get("users/nobody/enrollments").status == 400
