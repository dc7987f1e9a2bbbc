"""Settings of frameworks that no operator changes: Celery, applications, middleware, the toolkit, REST framework, OpenAPI and templates."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# Periodic tasks. A task may run twice without harm. A run that no worker starts within `expires` seconds is dropped.
CELERY_BEAT_SCHEDULE = {
    "prune deliveries": {"task": "provisioning.prune", "schedule": 3600.0, "options": {"expires": 3600.0}},
    "prune events": {"task": "events.prune", "schedule": 3600.0, "options": {"expires": 3600.0}},
    "prune credentials": {"task": "authapi.prune", "schedule": 300.0, "options": {"expires": 300.0}},
    "purge tenants": {"task": "identity.purge_tenants", "schedule": 3600.0, "options": {"expires": 3600.0}},
    "prune jobs": {"task": "identity.prune_jobs", "schedule": 3600.0, "options": {"expires": 3600.0}},
    "prune audit log": {"task": "identity.prune_audit_log", "schedule": 86400.0, "options": {"expires": 86400.0}},
    "end sessions": {"task": "authapi.end_sessions", "schedule": 300.0, "options": {"expires": 300.0}},
    "send notices of attacks": {"task": "authapi.send_attack_notices", "schedule": 60.0, "options": {"expires": 60.0}},
    "send logout notices": {"task": "authapi.send_logout_notices", "schedule": 30.0, "options": {"expires": 30.0}},
    "refresh metadata of providers": {
        "task": "authapi.refresh_metadata_of_providers",
        "schedule": 300.0,
        "options": {"expires": 300.0},
    },
    "rotate signing keys": {"task": "authapi.rotate_keys", "schedule": 3600.0, "options": {"expires": 3600.0}},
}

INSTALLED_APPS = [
    # Daphne makes `runserver` use ASGI. Other commands do not need it, and importing Twisted takes longer than importing all our own code.
    *(["daphne"] if "runserver" in sys.argv else []),
    # Without autodiscovery: our own admin site registers its models, and the toolkit's registrations are never loaded.
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "channels",
    "identity",
    "authapi",
    "oauth2_provider",
    "events",
    "provisioning",
    "config",
]
_MIDDLEWARE = [
    "config.middleware.content_policy.content_policy",
    "django.middleware.security.SecurityMiddleware",
    "config.middleware.platform_host.platform_host",
    "config.server.static_files.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    # This middleware is the innermost one, and it is synchronous. So Django runs all other middleware synchronously, too, in the same
    # thread. Otherwise each of the others would switch threads twice.
    "foundation.api.paths.route_on_sent_path",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]

# The toolkit (Django OAuth Toolkit) checks grants, authorization requests and revocations, and stores codes and opaque tokens. The app
# `authapi` has its own URLs, client authentication, JWTs and errors.
OAUTH2_PROVIDER = {
    "OAUTH2_SERVER_CLASS": "authapi.protocols.oauth.engine.Server",
    "OIDC_SERVER_CLASS": "authapi.protocols.oauth.engine.Server",
    "OAUTH2_VALIDATOR_CLASS": "authapi.protocols.oauth.engine.Validator",
    "SCOPES_BACKEND_CLASS": "authapi.protocols.oauth.engine.ClientGrantScopes",
    "SCOPES": {"openid": "Sign in"},
    "DEFAULT_SCOPES": [],
    "OIDC_ENABLED": True,
    # The next four settings are empty or off: each tenant has its own keys (`authapi.tokens.keys`), each host has its own issuer, and
    # `authapi` has its own discovery, logout and sign-up.
    "OIDC_RSA_PRIVATE_KEY": "",
    "OIDC_ISS_ENDPOINT": "",
    "OIDC_RP_INITIATED_LOGOUT_ENABLED": False,
    "OIDC_RP_INITIATED_REGISTRATION_ENABLED": False,
    "REFRESH_TOKEN_EXPIRE_SECONDS": 2_592_000,
    "REFRESH_TOKEN_GRACE_PERIOD_SECONDS": 0,
    "ROTATE_REFRESH_TOKEN": True,
    "REFRESH_TOKEN_REUSE_PROTECTION": True,
    "PKCE_REQUIRED": True,
    "ALLOWED_REDIRECT_URI_SCHEMES": ["https"],
    "ALLOW_URI_WILDCARDS": False,
    "ALLOW_LOCALHOST_LOOPBACK": False,
    "DCR_ENABLED": False,
    "CIMD_ENABLED": False,
    # RFC 9700 advises against the implicit grant, the password grant and the PKCE method `plain`, but the interface includes all three.
    # By default, all three are off for a client: its grant types can enable the two grants, and a setting can enable `plain`.
    "COMPLIANT_BCP_RFC9700_IMPLICIT_GRANT": False,
    "COMPLIANT_BCP_RFC9700_PASSWORD_GRANT": False,
    "COMPLIANT_BCP_RFC9700_PKCE_METHOD": False,
    # All other recommendations are enforced for every client.
    "COMPLIANT_BCP_RFC9700_PKCE_REQUIRED": True,
    "COMPLIANT_BCP_RFC9700_ACCESS_TOKEN_TRANSPORT": True,
    "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
    "COMPLIANT_BCP_RFC9700_TOKEN_STORAGE": True,
    "COMPLIANT_BCP_RFC9700_REFRESH_TOKEN": True,
    "COMPLIANT_BCP_RFC9700_REDIRECT_URI_SCHEME": True,
    "COMPLIANT_BCP_RFC9700_REDIRECT_URI_MATCHING": True,
}

# These deployment checks of the toolkit report the three recommendations that are not enforced (see above).
SILENCED_SYSTEM_CHECKS = ["oauth2_provider.W001", "oauth2_provider.W002", "oauth2_provider.W003"]

# `config.api` adds the checks of token, tenant and rate to every endpoint. A view without these checks refuses every request.
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["authapi.drf.BearerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["authapi.drf.HasScope"],
    "DEFAULT_PARSER_CLASSES": ["foundation.api.bodies.JsonBody", "foundation.api.bodies.FormBody"],
    "DEFAULT_RENDERER_CLASSES": ["foundation.api.wire.JsonAnswer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "foundation.api.wire.AlwaysJson",
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_SCHEMA_CLASS": "foundation.api.schema.OperationSchema",
    "EXCEPTION_HANDLER": "config.server.problems.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Identity service",
    "DESCRIPTION": "The management interface: users, connections, event streams, and the stream of events.",
    # The interface has version 2.0, and the base path ends with /api/v2.
    "VERSION": "2.0",
    "SERVERS": [{"url": "/api/v2"}],
    "SCHEMA_PATH_PREFIX": "/api/v2",
    "SCHEMA_PATH_PREFIX_TRIM": True,
    "COMPONENT_SPLIT_PATCH": False,
    "ENFORCE_NON_BLANK_FIELDS": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    # Enumerations are inlined where they are used; components named after fields would clash.
    "POSTPROCESSING_HOOKS": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": [],
}


def templates(directory: Path) -> list[dict[str, Any]]:
    """Return the engine of templates, which reads `directory` and the template directories of the apps."""
    return [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "DIRS": [directory],
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ]


def middleware(*, is_traced: bool) -> list[str]:
    """Return the middleware of Django, outermost first. `is_traced` adds the middleware that names the routes of spans."""
    found = list(_MIDDLEWARE)
    if is_traced:
        found.insert(-1, "config.middleware.traced_route.traced_route")
    return found
