from __future__ import annotations

from identity.models import Tenant, User
from identity.services import groups, memberships
from tests.factories.identity import make_connection
from tests.factories.organizations import make_group, make_organization, make_role
from tests.management import Management, segment


def test_the_role_sources_of_a_member_are_groups_of_the_same_organization(api: Management, tenant: Tenant, ada: User) -> None:
    acme, other = make_organization(tenant, "acme"), make_organization(tenant, "other")
    role, unrelated = make_role(tenant, "writer"), make_role(tenant, "reader")
    directory = make_connection(tenant_id=tenant.pk, strategy="samlp", options={"signInEndpoint": "https://idp.example.test"})
    of_directory = {"type": "connection", "connection_id": directory.pk}
    inner, outer, foreign = (make_group(tenant, name, **of_directory) for name in ("inner", "outer", "foreign"))
    groups.add_group_members(tenant_id=tenant.pk, group_id=inner.pk, user_ids=[ada.user_id])
    groups.add_group_members(tenant_id=tenant.pk, group_id=foreign.pk, user_ids=[ada.user_id])
    assert api.post(f"groups/{outer.pk}/members", {"members": [{"id": inner.pk, "member_type": "group"}]}).status == 204
    for organization, group in ((acme, outer), (other, foreign)):
        memberships.add_members(tenant_id=tenant.pk, organization_id=organization.pk, user_ids=[ada.user_id])
        inside = {"tenant_id": tenant.pk, "organization_id": organization.pk}
        memberships.assign_organization_group_roles(**inside, group_id=group.pk, role_ids=[role.pk])
    path = f"organizations/{acme.pk}/members/{segment(ada.user_id)}/effective-roles/sources/groups"

    found = api.get(path, {"role_id": role.pk}).json

    assert [group["id"] for group in found["groups"]] == [outer.pk]
    assert api.get(path, {"role_id": unrelated.pk}).json == {"groups": []}


def test_role_sources_are_refused_if_the_role_the_member_or_the_organization_is_unknown(api: Management, tenant: Tenant, ada: User) -> None:
    acme, role = make_organization(tenant, "acme"), make_role(tenant)
    below = "effective-roles/sources/groups"
    known = f"organizations/{acme.pk}/members/{segment(ada.user_id)}/{below}"
    assert api.get(known).status == 400
    assert api.get(known, {"role_id": "rol_ffffffffffffffff"}).status == 404
    assert api.get(f"organizations/org_0123456789abcdef/members/{segment(ada.user_id)}/{below}", {"role_id": role.pk}).status == 404
    assert api.get(f"organizations/{acme.pk}/members/database%7Cunknown/{below}", {"role_id": role.pk}).status == 404
