"""The resources, each declared once. The OpenAPI document, the schemas of events and the documents use these declarations. Pure."""

from __future__ import annotations

from foundation.shapes import ListOf, OneOf, Resource, Shape, always, mapping, maybe, moment, switch, text, unrecorded, whole

_LEVELS = OneOf(("none", "readonly", "limited", "full"))
_GROUP_TYPES = ["connection", "organization", "tenant"]
_ACTIVITY = {"active": {"type": "boolean"}}
_TEXTS = {"type": "string"}

PROFILE = Resource(
    {
        "email": maybe(text, format="email"),
        "email_verified": maybe(switch),
        "username": maybe(text),
        "phone_number": maybe(text),
        "phone_verified": maybe(switch),
        "name": maybe(text),
        "nickname": maybe(text),
        "given_name": maybe(text),
        "family_name": maybe(text),
        "picture": maybe(text, format="uri"),
    },
    in_events={"username": "nickname", "phone_number": "picture", "phone_verified": "phone_number"},
    in_documents={"username": "name", "phone_number": "picture", "phone_verified": "phone_number", "nickname": "family_name"},
)
IDENTITY = Resource(
    {
        "connection": always(text, description="Name of the connection."),
        "user_id": always(text, description="Without the provider."),
        "provider": always(text),
        "isSocial": always(switch),
        "profileData": maybe(
            PROFILE.shape(),
            shown=mapping,
            additionalProperties=True,
            description="Only if the user has two or more identities.",
        ),
    }
)
USER = Resource(
    {
        "user_id": always(text, description="<provider>|<id>"),
        **PROFILE.fields,
        "blocked": maybe(switch),
        "user_metadata": maybe(mapping, additionalProperties=True),
        "app_metadata": maybe(mapping, additionalProperties=True),
        "identities": always(ListOf(IDENTITY.shape()), items={"$ref": "#/components/schemas/Identity"}),
        "created_at": always(moment),
        "updated_at": always(moment),
        "last_login": maybe(moment),
        "last_ip": maybe(text),
        "logins_count": maybe(whole),
        "last_password_reset": unrecorded(moment),
        "multifactor": maybe(ListOf(text)),
        "multifactor_last_modified": unrecorded(moment),
    },
    in_events={
        "identities": "updated_at",
        "user_metadata": "app_metadata",
        "multifactor": "user_metadata",
        "last_login": "last_ip",
        "blocked": "logins_count",
    },
    in_documents={
        "username": "phone_verified",
        "multifactor": "app_metadata",
        "blocked": "multifactor",
        "created_at": "logins_count",
        "updated_at": "created_at",
    },
)
CONNECTION = Resource(
    {
        "id": always(text, pattern="^con_[A-Za-z0-9]{16}$"),
        "name": always(text),
        "strategy": always(text),
        "display_name": maybe(text),
        "options": maybe(
            mapping,
            additionalProperties=True,
            description="Secrets and unknown members are write-only: no response contains them. A change that does not name such a member "
            "keeps it. To remove it, send null, or omit the readable object that contains it. If an address that receives credentials "
            "changes, send the credentials again.",
        ),
        "realms": maybe(ListOf(text)),
        "enabled_clients": maybe(ListOf(text), description="Lists contain it only if `fields` names it."),
        "show_as_button": maybe(switch),
        "metadata": maybe(mapping, additionalProperties=_TEXTS),
        "authentication": maybe(mapping, properties=_ACTIVITY),
        "connected_accounts": maybe(mapping, properties=_ACTIVITY),
        "is_domain_connection": maybe(switch),
        "created_at": unrecorded(moment),
        "updated_at": unrecorded(moment),
    },
    in_events={"is_domain_connection": "enabled_clients"},
)
ORGANIZATION = Resource(
    {
        "id": always(text, pattern="^org_[A-Za-z0-9]{16}$"),
        "name": always(text),
        "display_name": maybe(text),
        "branding": maybe(
            Shape({}, {"logo_url": text, "colors": Shape({"primary": text, "page_background": text}, {})}),
            shown=mapping,
            additionalProperties=True,
        ),
        "metadata": maybe(mapping, additionalProperties=_TEXTS),
        "token_quota": unrecorded(mapping, additionalProperties=True),
        "third_party_client_access": unrecorded(text),
        "is_app_entitlement_active": unrecorded(switch),
        "enabled_connections": unrecorded(
            ListOf(mapping),
            items={"$ref": "#/components/schemas/EnabledConnection"},
            description="Only in the response that creates the organization.",
        ),
    },
    in_events={"branding": "metadata"},
    in_documents={"branding": "metadata"},
)
ENABLED_CONNECTION = Resource(
    {
        "connection_id": unrecorded(text),
        "assign_membership_on_login": maybe(switch),
        "show_as_button": maybe(switch),
        "is_signup_enabled": maybe(switch),
        "connection": unrecorded(mapping, required=["name", "strategy"], properties={"name": _TEXTS, "strategy": _TEXTS}),
    }
)
ORGANIZATION_CONNECTION = Resource(
    {
        **ENABLED_CONNECTION.fields,
        "is_enabled": maybe(switch),
        "organization_connection_name": unrecorded(text),
        "organization_access_level": maybe(_LEVELS),
        "organization_member_access_level": unrecorded(_LEVELS),
    }
)
GROUP = Resource(
    {
        "id": always(text, pattern="^grp_[1-9A-HJ-NP-Za-km-z]{14,22}$"),
        "name": always(text),
        "type": always(text, enum=_GROUP_TYPES),
        "tenant_name": unrecorded(text),
        "external_id": maybe(text),
        "connection_id": maybe(text),
        "organization_id": maybe(text),
        "description": unrecorded(text),
        "created_at": always(moment),
        "updated_at": always(moment),
    }
)
GROUP_MEMBER = Resource(
    {
        "id": always(text),
        "member_type": always(text, enum=["user", "group"]),
        "type": maybe(text, enum=_GROUP_TYPES, description="Only for a nested group."),
        "connection_id": maybe(text),
        "created_at": unrecorded(moment),
    }
)
ROLE = Resource(
    {
        "id": always(text, pattern="^rol_[A-Za-z0-9]{16}$"),
        "name": always(text),
        "description": unrecorded(text),
        "type": unrecorded(text, enum=["tenant", "organization"]),
        "owner_id": unrecorded(text, description="The id of the organization. Absent for a role of the tenant."),
    }
)
