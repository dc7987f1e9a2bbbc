"""URNs of RFC 7643 and RFC 7644 for the member `schemas`. Pure."""

USER = "urn:ietf:params:scim:schemas:core:2.0:User"
ENTERPRISE_USER = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
LIST_RESPONSE = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
PATCH_OP = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"

MEDIA_TYPE = "application/scim+json"
