"""The readable options of each strategy (docs/adr/0075). Pure."""

from __future__ import annotations

from collections.abc import Mapping

from identity.options.schemas import enterprise, own, social
from identity.options.schemas.nodes import Members

SCHEMAS: Mapping[str, Members] = {
    "email": own.EMAIL,
    "sms": own.SMS,
    "oidc": enterprise.OIDC,
    "okta": enterprise.OIDC,
    "auth0-oidc": enterprise.OIDC,
    "samlp": enterprise.SAML,
    "pingfederate": enterprise.PING_FEDERATE,
    "adfs": enterprise.ADFS,
    "ad": enterprise.AD,
    "auth0-adldap": enterprise.AD,
    "waad": enterprise.AZURE_AD,
    "google-apps": enterprise.GOOGLE_APPS,
    "sharepoint": enterprise.SHAREPOINT,
    "office365": enterprise.OFFICE_365,
    "ip": enterprise.IP_RANGES,
    "google-oauth2": social.GOOGLE,
    "apple": social.APPLE,
    "facebook": social.FACEBOOK,
    "github": social.GITHUB,
    "linkedin": social.LINKEDIN,
    "twitter": social.TWITTER,
    "windowslive": social.WINDOWS_LIVE,
    "oauth1": social.OAUTH1,
    "salesforce": social.SALESFORCE,
    "salesforce-community": social.SALESFORCE,
    "salesforce-sandbox": social.SALESFORCE,
    "oauth2": social.OAUTH2,
    "custom": social.OAUTH2,
}
DATABASE = own.DATABASE


def schema_of(strategy: str, *, is_database: bool) -> Members:
    """Return the schema of a strategy. A strategy without its own schema has the schema for any OAuth 2.0 provider."""
    return DATABASE if is_database else SCHEMAS.get(strategy, social.OAUTH2)
