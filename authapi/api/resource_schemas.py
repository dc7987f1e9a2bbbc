"""OpenAPI schemas of resource servers, client grants and permissions."""

from __future__ import annotations

from foundation.api.list_schemas import LIST_FORMS, TAKE_FORM, fields_of, list_of, reference, taken_list
from foundation.api.operations import SWITCH, TEXT, WHOLE, Parameter, Schema

_TEXTS: Schema = {"type": "array", "items": TEXT}
_SUBJECT: Schema = {**TEXT, "enum": ["client", "user"]}
_PERMISSION = dict.fromkeys(("permission_name", "description", "resource_server_name", "resource_server_identifier"), TEXT)
_SOURCE: Schema = {"type": "object", "properties": dict.fromkeys(("source_id", "source_name", "source_type"), TEXT)}

RESOURCE_SERVER = reference("ResourceServer")
RESOURCE_SERVERS = list_of("resource_servers", RESOURCE_SERVER)
CLIENT_GRANT = reference("ClientGrant")
CLIENT_GRANTS = list_of("client_grants", CLIENT_GRANT)
PERMISSIONS = list_of("permissions", reference("Permission"))
USER_PERMISSIONS = list_of("permissions", reference("UserPermission"))
EFFECTIVE_PERMISSIONS = taken_list("permissions", reference("EffectivePermission"))
# No member is required, because `fields` may leave out any.
COMPONENTS: dict[str, Schema] = {
    "ResourceServer": {
        "type": "object",
        "properties": {
            "id": TEXT,
            "identifier": TEXT,
            "name": TEXT,
            "is_system": SWITCH,
            "scopes": {"type": "array", "items": {"type": "object", "properties": {"value": TEXT, "description": TEXT}}},
            "signing_alg": {**TEXT, "enum": ["HS256", "RS256", "RS512", "PS256"]},
            "token_lifetime": WHOLE,
            "token_lifetime_for_web": WHOLE,
            "token_dialect": TEXT,
            "enforce_policies": SWITCH,
            "allow_offline_access": SWITCH,
            "skip_consent_for_verifiable_first_party_clients": SWITCH,
            "subject_type_authorization": {"type": "object", "additionalProperties": True},
            "authorization_details": {
                "type": "array",
                "description": "Types of rich authorization requests (RFC 9396) that the API accepts.",
                "items": {
                    "type": "object",
                    "required": ["type"],
                    "properties": {
                        "type": TEXT,
                        "title": {**TEXT, "description": "Name of the type on the consent page."},
                        "sentence": {
                            **TEXT,
                            "description": "Text of one object on the consent page; {member} is replaced with the value of this member.",
                        },
                        "schema": {
                            "type": "object",
                            "additionalProperties": True,
                            "description": "A JSON Schema that each object of the type must match.",
                        },
                    },
                },
            },
            "proof_of_possession": {
                "type": "object",
                "nullable": True,
                "properties": {
                    "mechanism": {**TEXT, "enum": ["dpop", "mtls"]},
                    "required": SWITCH,
                    "required_for": {**TEXT, "enum": ["all_clients", "public_clients"]},
                },
            },
        },
    },
    "ClientGrant": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("id", "client_id", "audience", "organization_usage"), TEXT),
            "scope": _TEXTS,
            "subject_type": _SUBJECT,
            "allow_all_scopes": SWITCH,
            "allow_any_organization": SWITCH,
            "authorization_details_types": _TEXTS,
            "token_exchange": {
                **TEXT,
                "enum": ["delegation", "impersonation"],
                "description": "With `delegation`, tokens that the client gets by an exchange name the client as the actor. "
                "With `impersonation`, they do not. "
                "Default: `delegation`.",
            },
        },
    },
    "Permission": {"type": "object", "properties": _PERMISSION},
    "UserPermission": {
        "type": "object",
        "properties": {**_PERMISSION, "sources": {"type": "array", "items": _SOURCE}},
    },
    "EffectivePermission": {
        "type": "object",
        "properties": {**_PERMISSION, "sources": {"type": "array", "items": {**TEXT, "enum": ["direct", "roles"]}}},
    },
}
RESOURCE_SERVER_FIELDS = fields_of(COMPONENTS["ResourceServer"])
CLIENT_GRANT_FIELDS = fields_of(COMPONENTS["ClientGrant"])
PERMISSION_FIELDS = tuple(_PERMISSION)
SOURCED_PERMISSION_FIELDS = (*_PERMISSION, "sources")
LIST_PARAMETERS = (*LIST_FORMS, Parameter("identifiers", _TEXTS, "Identifiers. Repeat the parameter for several values."))
GRANT_PARAMETERS = (
    *LIST_FORMS,
    Parameter("client_id", TEXT, "Grants of one client."),
    Parameter("audience", TEXT, "Grants for one API."),
    Parameter("allow_any_organization", SWITCH, "True: only grants that apply in every organization. False: only the other grants."),
    Parameter("subject_type", _SUBJECT, "Only grants for clients, or only grants for users."),
    Parameter("default_for", TEXT, "Only default grants. No grant is a default, so the result is always empty."),
)
ORGANIZATION_GRANT_PARAMETERS = (
    *LIST_FORMS,
    Parameter("grant_ids", {**_TEXTS, "maxItems": 10}, "Ids of client grants. Repeat the parameter for several values."),
    Parameter("client_id", TEXT, "Grants of one client."),
    Parameter("audience", TEXT, "Grants for one API."),
)
RESOURCE_SERVER_IDENTIFIER = Parameter("resource_server_identifier", TEXT, "The API.", is_required=True)
EFFECTIVE_PARAMETERS = (RESOURCE_SERVER_IDENTIFIER, *TAKE_FORM)
SOURCE_PARAMETERS = (*EFFECTIVE_PARAMETERS, Parameter("permission_name", TEXT, "The permission.", is_required=True))
