"""Forms for connections of strategies that the service does not implement: it stores such a connection, but no user can log in with it.

Pure.

Each form recommends a strategy with which the users can log in.

Tenants import such connections from other services. The users, groups and events of these connections work as usual.
"""

from __future__ import annotations

from collections.abc import Mapping

from identity.options.guide_fields import Guide, OptionField

_DOMAIN = OptionField("domain", "Domain", "The primary domain of the organization, such as example.com.")

STORED_GUIDES: Mapping[str, Guide] = {
    "ad": Guide(
        "Active Directory or LDAP",
        (
            OptionField("ips", "Networks for Kerberos", "One network per line, such as 192.0.2.0/24.", kind="lines"),
            OptionField("kerberos", "Use Kerberos in these networks", kind="switch"),
            OptionField("certAuth", "Use client certificates", kind="switch"),
            OptionField("signInEndpoint", "Address of the connector", kind="address"),
            OptionField("thumbprints", "Thumbprints of the connector's certificates", "One per line.", kind="lines"),
        ),
        ("For logins, add a connection of Active Directory Federation Services, Microsoft Entra or SAML.",),
        callback="",
        has_login=False,
    ),
    "google-apps": Guide(
        "Google Workspace",
        (
            _DOMAIN,
            OptionField("client_id", "Client id"),
            OptionField("scope", "Scopes", "Separated by spaces.", kind="words"),
            OptionField("email", "Read the email address", kind="switch"),
            OptionField("profile", "Read the profile", kind="switch"),
            OptionField("api_enable_users", "Read users from the directory", kind="switch"),
            OptionField("api_enable_groups", "Read groups from the directory", kind="switch"),
            OptionField("admin_access_token", "Access token of the administrator", kind="secret"),
            OptionField("admin_refresh_token", "Refresh token of the administrator", kind="secret"),
        ),
        ("For logins, add a connection of Google and enter the domain in the field “Allowed Google Workspace domains”.",),
        callback="",
        has_login=False,
    ),
    "custom": Guide(
        "Custom provider",
        (
            OptionField("authorizationURL", "Authorization address", "Address of the login page of the provider.", kind="address"),
            OptionField("tokenURL", "Token address", "Address at which codes are exchanged for tokens.", kind="address"),
            OptionField("userInfoURL", "Address of the profile", kind="address"),
            OptionField("client_id", "Client id"),
            OptionField("client_secret", "Client secret", kind="secret"),
            OptionField("scope", "Scopes", "Separated by spaces.", kind="words"),
        ),
        ("For logins, add a connection of OAuth 2.0 or OpenID Connect with the same addresses.",),
        callback="",
        has_login=False,
    ),
}
