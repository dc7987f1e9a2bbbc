"""Settings shared by all environments; each value is an environment variable of the same name, read through `config.env`."""

from __future__ import annotations

from pathlib import Path

from config import env
from config.logging import configure_structlog, logging_settings
from config.settings import frameworks
from config.settings.database_url import database_settings, replica_settings
from config.settings.email_url import email_settings
from config.settings.queue import celery_settings
from config.settings.sms_url import sms_settings
from config.settings.tracing import require_packages

BASE_DIR = Path(__file__).resolve().parents[2]
DATA_DIR = Path(env.text("DATA_DIR", str(BASE_DIR / ".data"), "Directory for files of the embedded servers and the demo."))

# --- Secrets: four key lists, newest key first. Keep an old key until no data depends on it --------------------------
SESSION_KEYS = env.keys("SESSION_KEYS", "", "Keys that sign sessions of staff and one-time links in mails.")
ENCRYPTION_KEYS = env.keys("ENCRYPTION_KEYS", "", "Keys that encrypt secrets at rest (AES-256-GCM).")
DIGEST_KEYS = env.keys("DIGEST_KEYS", "", "Keys of the stored digests of client secrets.")
CURSOR_KEYS = env.keys("CURSOR_KEYS", "", "Keys that seal stream cursors; if a key is removed, the cursors that it sealed become invalid.")
SECRET_KEY = next(iter(SESSION_KEYS.values()), "")
SECRET_KEY_FALLBACKS = list(SESSION_KEYS.values())[1:]

# --- Addresses --------------------------------------------------------------------------------------------------------
DEBUG = False
# Every Host is checked against the registered domains of tenants by `config.server.hosts` before Django sees a request.
ALLOWED_HOSTS = ["*"]
PLATFORM_HOST = env.text("PLATFORM_HOST", "localhost", "Host of the admin, the API browser and the metrics.")
LOCALHOST_TENANT = env.text("LOCALHOST_TENANT", "", "Id of the tenant that answers on localhost and loopback addresses.")
INSECURE_HTTP = env.flag("INSECURE_HTTP", default=False, effect="Serve plain http on loopback addresses; elsewhere, answer 403.")
COUNTRY_HEADER = env.text(
    "COUNTRY_HEADER", "", "Header in which a proxy passes the country of the caller, such as CF-IPCountry. Empty: countries are unknown."
)
TRUSTED_PROXIES = env.networks(
    "TRUSTED_PROXIES",
    "",
    "Proxies whose X-Forwarded-Proto and X-Forwarded-For are trusted: IP addresses and networks; the item unix: means all unix sockets.",
)

# --- Staff ------------------------------------------------------------------------------------------------------------
STAFF_SECOND_FACTOR = env.text(
    "STAFF_SECOND_FACTOR",
    "operators",
    "Accounts that must have a second factor in the admin: none, platform operators, platform operators and administrators, or all.",
    choices=("off", "operators", "administrators", "all"),
)
STAFF_PROOF_MINUTES = env.integer(
    "STAFF_PROOF_MINUTES",
    15,
    "Minutes after a sign-in or proof during which staff may see secrets and redeliver many dead letters.",
    minimum=1,
    maximum=1440,
)

# --- Brand on the wire ------------------------------------------------------------------------------------------------
EVENT_ATTRIBUTE_PREFIX = env.text("EVENT_ATTRIBUTE_PREFIX", "x0", "Prefix of the envelope fields tenant, stream, purpose.")
EVENT_SOURCE_NAMESPACE = env.text("EVENT_SOURCE_NAMESPACE", "svc", "Namespace in `source`: urn:<namespace>:<tenant>.<domain>.")
# Compare DATABASE_STRATEGY with the stored connections at the start. Off in tests, where several strategies share a database.
CHECK_DATABASE_STRATEGY = True
DATABASE_STRATEGY = env.text("DATABASE_STRATEGY", "database", "Strategy name of database connections and prefix of user ids.")

# --- Servers ----------------------------------------------------------------------------------------------------------
WEB_ROLE = env.text(
    "WEB_ROLE",
    "all",
    "Requests that a web process serves: all, all except event streams, or only event streams.",
    choices=("all", "app", "stream"),
)
WEB_SYNC_LIMIT = env.integer(
    "WEB_SYNC_LIMIT", 12, "Synchronous requests that a web process runs at once; also the size of its database pool.", minimum=1
)
DATABASE_URL = env.secret("DATABASE_URL", "postgresql:///identity", "PostgreSQL 14 or newer.")
REDIS_URL = env.secret(
    "REDIS_URL",
    "redis://127.0.0.1:6379/0",
    "URL of a Redis protocol server, or of sentinels that find it; no event is lost if the server fails.",
)
REDIS_PREFIX = env.text("REDIS_PREFIX", "identity", "Prefix of every key and channel in Redis.")
REDIS_TIMEOUT_SECONDS = env.number(
    "REDIS_TIMEOUT_SECONDS",
    0.2,
    "Timeout of a Redis command; after a timeout Redis is not used for a while. Raise it for a distant Redis.",
    minimum=0.01,
)
DATABASE_POOL = env.flag("DATABASE_POOL", default=True, effect="Share database connections in a pool per process.")
MIGRATION_LOCK_TIMEOUT_SECONDS = env.number(
    "MIGRATION_LOCK_TIMEOUT_SECONDS",
    5.0,
    "How long a migration waits for a lock before manage.py migrate stops. Meanwhile requests on the table wait behind the migration.",
    minimum=0.1,
)
DATABASE_REPLICA_URL = env.secret(
    "DATABASE_REPLICA_URL", "", "A streaming replica for lists of the admin and exports of users; empty: the primary answers all queries."
)
REPLICA_MAX_LAG_SECONDS = env.number(
    "REPLICA_MAX_LAG_SECONDS", 30.0, "Maximum age of a list from the replica; if the data is older, the primary answers.", minimum=0.1
)
DATABASES = {"default": database_settings(DATABASE_URL, pool_size=WEB_SYNC_LIMIT if DATABASE_POOL else 0)}
if DATABASE_REPLICA_URL:
    DATABASES["replica"] = replica_settings(DATABASE_REPLICA_URL, pool_size=WEB_SYNC_LIMIT if DATABASE_POOL else 0)

# --- Events and the stream --------------------------------------------------------------------------------------------
EVENT_MAX_BYTES = env.integer("EVENT_MAX_BYTES", 512 * 1024, "Largest event message; a change with a larger event gets 413.", minimum=4096)
EVENTS_NUMBERER_ENABLED = env.flag("EVENTS_NUMBERER_ENABLED", default=True, effect="Run the numbering thread in this process.")
EVENTS_SWEEPER_ENABLED = env.flag("EVENTS_SWEEPER_ENABLED", default=True, effect="Let this worker record leftover marks as events.")
EVENTS_HEARTBEAT_SECONDS = env.number("EVENTS_HEARTBEAT_SECONDS", 15.0, "Silence after which a stream gets a heartbeat.", minimum=0.05)
EVENTS_LIFETIME_SECONDS = env.number(
    "EVENTS_LIFETIME_SECONDS", 600.0, "Maximum lifetime of a stream; a stream ends after 80 to 100 % of this time.", minimum=0.1
)
EVENTS_WRITE_DEADLINE_SECONDS = env.number(
    "EVENTS_WRITE_DEADLINE_SECONDS", 20.0, "Maximum time for which a write to a stream may block; then the stream is closed.", minimum=0.1
)
EVENTS_RETRY_MS = env.integer("EVENTS_RETRY_MS", 2000, "The `retry:` field that clients receive, in milliseconds.", minimum=100)
EVENTS_RING_BYTES = env.integer(
    "EVENTS_RING_BYTES",
    64 * 1024 * 1024,
    "Maximum size of all frames in the memory of a process: an eighth for the pages of replays, the rest for the rings.",
    minimum=1024 * 1024,
)
EVENTS_MAX_CONNECTIONS_PER_TENANT = env.integer(
    "EVENTS_MAX_CONNECTIONS_PER_TENANT", 8, "Maximum open streams per tenant; a further stream gets 403.", minimum=1
)
EVENTS_MAX_CONNECTIONS_PER_PROCESS = env.integer(
    "EVENTS_MAX_CONNECTIONS_PER_PROCESS", 10_000, "Maximum open streams per process; a further stream gets 503.", minimum=1
)
EVENTS_LEASE_SECONDS = env.number("EVENTS_LEASE_SECONDS", 30.0, "Lifetime of a connection slot without renewal.", minimum=1)
EVENTS_DRAIN_SECONDS = env.number("EVENTS_DRAIN_SECONDS", 8.0, "Time over which open streams are closed at shutdown.")
EVENTS_RETENTION_DAYS = env.number("EVENTS_RETENTION_DAYS", 30.0, "How long events of a tenant are kept.", minimum=1 / 24)

# --- Metrics ----------------------------------------------------------------------------------------------------------
METRICS_TOKEN = env.secret(
    "METRICS_TOKEN", "", "Bearer token that /metrics requires from every IP address; empty: METRICS_NETWORKS decides."
)
METRICS_NETWORKS = env.listing("METRICS_NETWORKS", "127.0.0.0/8,::1/128", "Networks that may read /metrics without a token.")
METRICS_STREAMS = env.integer(
    "METRICS_STREAMS", 100, "Number of event streams that have separate metrics: the oldest enabled streams; 0: no stream.", maximum=1000
)
PROMETHEUS_MULTIPROC_DIR = env.text(
    "PROMETHEUS_MULTIPROC_DIR",
    "",
    "Directory in which all processes of a machine share the counts of their metrics; empty: each process shows only its own counts.",
)
# The Prometheus library reads this environment variable when the first metric is declared. The directory must exist then.
if PROMETHEUS_MULTIPROC_DIR:
    Path(PROMETHEUS_MULTIPROC_DIR).mkdir(parents=True, exist_ok=True)

# --- Traces -----------------------------------------------------------------------------------------------------------
TRACING_ENDPOINT = env.address(
    "TRACING_ENDPOINT", "", "OTLP/HTTP address of a collector, such as http://host:4318/v1/traces; empty: no traces."
)
TRACING_HEADERS = env.headers("TRACING_HEADERS", "Headers of requests to the collector, as name=value,name=value.")
TRACING_SHARE = env.number("TRACING_SHARE", 1.0, "Share of requests with a trace, from 0 to 1.", maximum=1.0)
TRACING_PROXIES = env.networks(
    "TRACING_PROXIES", "", "Proxies whose traceparent is continued as the same trace; a trace of another caller is only linked."
)
TRACING_SERVICE_NAME = env.text("TRACING_SERVICE_NAME", "identity", "Name of this service in traces.")
require_packages(TRACING_ENDPOINT)

# --- Tokens -----------------------------------------------------------------------------------------------------------
ACCESS_TOKEN_SECONDS = env.integer("ACCESS_TOKEN_SECONDS", 86400, "Lifetime of an access token for an API.", minimum=10, maximum=2_592_000)
ACCESS_TOKEN_WEB_SECONDS = env.integer(
    "ACCESS_TOKEN_WEB_SECONDS", 7200, "Lifetime of an access token issued through a browser.", minimum=10, maximum=2_592_000
)
ID_TOKEN_SECONDS = env.integer("ID_TOKEN_SECONDS", 36_000, "Lifetime of an id token when the client sets none.", minimum=10)
AUTHORIZATION_CODE_SECONDS = env.integer("AUTHORIZATION_CODE_SECONDS", 60, "Lifetime of an authorization code.", minimum=5, maximum=600)
SIGN_IN_LOG_DAYS = env.number(
    "SIGN_IN_LOG_DAYS", 30.0, "How long the lines of the sign-in log and of the administrative log are kept.", minimum=1 / 24
)
SIGNING_KEY_DAYS = env.integer("SIGNING_KEY_DAYS", 90, "Days before a signing key is rotated; 0: only rotate_signing_keys rotates it.")
AUTHORIZATION_REQUEST_SECONDS = env.integer("AUTHORIZATION_REQUEST_SECONDS", 3600, "Maximum duration of a login.", minimum=60)
REGISTERED_CLIENTS_MAX = env.integer("REGISTERED_CLIENTS_MAX", 10_000, "Maximum self-registered clients per tenant.", minimum=1)
DEVICE_CODE_SECONDS = env.integer("DEVICE_CODE_SECONDS", 900, "Lifetime of device and user codes.", minimum=60, maximum=3600)
PASSWORDLESS_LINK_SECONDS = env.integer("PASSWORDLESS_LINK_SECONDS", 1800, "Lifetime of a mailed login link.", minimum=60, maximum=86_400)
LOGOUT_RETRY_DELAYS = env.numbers(
    "LOGOUT_RETRY_DELAYS", "5,30,120,600", "Seconds before each repetition of a logout notification that a client did not accept."
)
RATE_LIMITS_ENABLED = env.flag(
    "RATE_LIMITS_ENABLED", default=True, effect="Apply rate limits; turn them off for load tests. Login protection stays on."
)
RATE_LIMIT_PER_SECOND = env.integer("RATE_LIMIT_PER_SECOND", 100, "Requests per second, tenant and endpoint.", minimum=1)
RATE_LIMIT_BURST = env.integer("RATE_LIMIT_BURST", 200, "Requests of one burst, per tenant and endpoint.", minimum=1)
FAILED_AUTHENTICATIONS_PER_MINUTE = env.integer(
    "FAILED_AUTHENTICATIONS_PER_MINUTE", 60, "Refused requests per IP address, tenant and minute; further refusals get 429.", minimum=1
)
ADDRESS_RATE_PER_SECOND = env.integer("ADDRESS_RATE_PER_SECOND", 50, "Requests for pages and keys per second and IP address.", minimum=1)
ADDRESS_RATE_BURST = env.integer("ADDRESS_RATE_BURST", 1000, "Burst of requests for pages and keys per IP address.", minimum=1)
ANONYMOUS_RATE_PER_SECOND = env.integer(
    "ANONYMOUS_RATE_PER_SECOND",
    500,
    "Additional requests for pages and keys per second and tenant, for IP addresses above their own limit.",
    minimum=1,
)

# --- Bodies of requests -----------------------------------------------------------------------------------------------
UNREAD_BODY_BYTES = env.integer(
    "UNREAD_BODY_BYTES", 64 * 1024 * 1024, "Maximum bytes of request bodies in the memory of a process.", minimum=1024 * 1024
)
UNREAD_BODY_BYTES_PER_ADDRESS = env.integer(
    "UNREAD_BODY_BYTES_PER_ADDRESS",
    4 * 1024 * 1024,
    "Maximum bytes of request bodies from one IP address in the memory of a process.",
    minimum=1024 * 1024,
)

# --- Management interface ---------------------------------------------------------------------------------------------
OFFSET_LIMIT = env.integer(
    "OFFSET_LIMIT", 0, "Number of rows of a list that page numbers can reach; a later page gets 400. 0: no limit.", minimum=0
)
USER_SEARCH_TIMEOUT_MS = env.integer(
    "USER_SEARCH_TIMEOUT_MS", 2000, "Statement timeout of a user search, in milliseconds; a longer search gets 503.", minimum=50
)
USER_SEARCH_COUNT_LIMIT = env.integer(
    "USER_SEARCH_COUNT_LIMIT",
    1_000,
    "Maximum matches that a user search counts; if more users match, `total` is this number plus one. 0 counts all.",
    minimum=0,
)

IMPORT_MAX_BYTES = env.integer("IMPORT_MAX_BYTES", 64 * 1024 * 1024, "Maximum size of a user import.", minimum=1024)
IMPORTS_PER_TENANT = env.integer("IMPORTS_PER_TENANT", 2, "Maximum concurrent imports of a tenant; a further one gets 429.", minimum=1)
IMPORT_ERRORS_KEPT = env.integer(
    "IMPORT_ERRORS_KEPT", 10_000, "Maximum failed rows of an import that are stored; further failed rows are only counted.", minimum=1
)
JOB_MAX_SECONDS = env.integer("JOB_MAX_SECONDS", 7200, "Maximum duration of an import or export; a longer job fails.", minimum=1)
AUDIT_RETENTION_DAYS = env.number(
    "AUDIT_RETENTION_DAYS", 400.0, "How long entries of the audit log are kept, 30 days at least.", minimum=30
)
JOB_RETENTION_DAYS = env.number("JOB_RETENTION_DAYS", 7.0, "How long finished jobs, their errors and their files are kept.")
EXPORT_LINK_SECONDS = env.integer("EXPORT_LINK_SECONDS", 60, "Lifetime of the link to an exported file.", minimum=1)
EMAIL_TICKET_DAYS = env.number("EMAIL_TICKET_DAYS", 5.0, "Lifetime of a link that verifies an e-mail address.", minimum=0.001)

# --- Mail -------------------------------------------------------------------------------------------------------------
EMAIL_URL = env.secret("EMAIL_URL", "", "Mail server: smtp://user:password@host:587, smtps://..., console:, file:/directory.")
EMAIL_FROM = env.text("EMAIL_FROM", "no-reply@localhost", "Sender of mails for which the tenant has set no sender.")
vars().update(email_settings(EMAIL_URL, sender=EMAIL_FROM))
MAIL_IS_CONFIGURED = bool(EMAIL_URL)
# Whether mail reaches real recipients, not only a terminal or a file.
MAIL_REACHES_PEOPLE = EMAIL_URL.startswith("smtp")

# --- Text messages ----------------------------------------------------------------------------------------------------
SMS_URL = env.secret(
    "SMS_URL", "", "Provider of text messages: console:, file:/directory, twilio://sid:token@host?from=..., webhook+https://...."
)
SMS_SENDER = sms_settings(SMS_URL)
SMS_COUNTRIES = env.listing("SMS_COUNTRIES", "", "Allowed destination countries of text messages, such as DE,AT; empty: all.")
TWILIO_BASE_URL = env.text("TWILIO_BASE_URL", "https://api.twilio.com", "Address of the Twilio API for accounts of tenants.")

# --- Breached passwords -----------------------------------------------------------------------------------------------
BREACHED_PASSWORDS_FILE = env.text(
    "BREACHED_PASSWORDS_FILE",
    "",
    "Path of the list of breached passwords, which manage.py breached_passwords makes. Empty: there is no list.",
)
BREACHED_PASSWORDS_URL = env.text(
    "BREACHED_PASSWORDS_URL", "https://api.pwnedpasswords.com/range/", "Range interface that manage.py breached_passwords refresh queries."
)

# --- The end of a tenant ----------------------------------------------------------------------------------------------
TENANT_DELETION_GRACE_DAYS = env.number("TENANT_DELETION_GRACE_DAYS", 0.0, "How long a tenant's deletion can be undone.")
TENANT_DRAIN_SECONDS = env.number(
    "TENANT_DRAIN_SECONDS", 3600.0, "How long a deleted tenant's streams may take to deliver remaining events."
)

# --- Provisioning -----------------------------------------------------------------------------------------------------
DELIVERY_RETRY_DELAYS = env.numbers("DELIVERY_RETRY_DELAYS", "1,5,30,120,600,1800", "Seconds before each further attempt of a delivery.")
DELIVERY_RETRY_JITTER = env.number("DELIVERY_RETRY_JITTER", 0.2, "Largest random addition to a retry delay, as a share of the delay.")
DELIVERY_LEASE_SECONDS = env.number(
    "DELIVERY_LEASE_SECONDS", 45.0, "How long a worker may run a delivery before another worker may claim its lane.", minimum=1
)
DELIVERY_BUDGET_SECONDS = env.number("DELIVERY_BUDGET_SECONDS", 10.0, "Deadline of one run of an action.", minimum=0.1)
DELIVERY_SWEEP_SECONDS = env.number("DELIVERY_SWEEP_SECONDS", 2.0, "Pause between two sweeps for due lanes.", minimum=0.1)
DELIVERY_NUDGE_SECONDS = env.number("DELIVERY_NUDGE_SECONDS", 30.0, "Time after which a nudge for a lane is considered lost.", minimum=0.1)
DELIVERY_NUDGES_ENABLED = env.flag("DELIVERY_NUDGES_ENABLED", default=True, effect="Send nudges to workers; off: only sweeps find work.")
ATTEMPT_BODIES_DAYS = env.number("ATTEMPT_BODIES_DAYS", 14.0, "How long the masked exchanges of failed attempts are kept.")
DELIVERY_RETENTION_DAYS = env.number("DELIVERY_RETENTION_DAYS", 30.0, "How long settled deliveries and their attempts are kept.")
BREAKER_FAILURES = env.integer("BREAKER_FAILURES", 20, "Consecutive failures that hold a stream; 0: never.")
BREAKER_USERS = env.integer(
    "BREAKER_USERS", 3, "The failures of BREAKER_FAILURES hold a stream only if they concern at least this many users.", minimum=1
)
BREAKER_UNAUTHORIZED = env.integer("BREAKER_UNAUTHORIZED", 3, "Consecutive 401 responses that hold a stream; 0: never.")
BREAKER_FORBIDDEN_USERS = env.integer(
    "BREAKER_FORBIDDEN_USERS",
    2,
    "Consecutive users with a 403 that hold a stream; a refused read request after a 403 holds it, too. 0: a 403 never holds it.",
)
BREAKER_PROBE_SECONDS = env.number(
    "BREAKER_PROBE_SECONDS", 60.0, "Pause between two deliveries that test the destination of a held stream.", minimum=0.1
)
DELETIONS_BY_NAME_PER_HOUR = env.integer(
    "DELETIONS_BY_NAME_PER_HOUR",
    5,
    "Maximum deletions of accounts that were matched by userName only, per stream and hour; one more deletion holds the stream.",
)
HOLD_MAX_SECONDS = env.number("HOLD_MAX_SECONDS", 604800.0, "Time on hold after which waiting deliveries become dead letters.", minimum=1)
DEAD_LETTER_ALERT_FIRST = env.flag(
    "DEAD_LETTER_ALERT_FIRST", default=True, effect="Alert on the first dead letter of each kind of failure."
)
DEAD_LETTER_ALERT_OPEN = env.integer("DEAD_LETTER_ALERT_OPEN", 100, "Alert when a stream has this many open dead letters; 0: never.")
DEAD_LETTER_ALERT_AGE_SECONDS = env.number(
    "DEAD_LETTER_ALERT_AGE_SECONDS", 86400.0, "Alert when a dead letter is open for this long; 0: never."
)
DEAD_LETTER_ALERT_HELD = env.flag("DEAD_LETTER_ALERT_HELD", default=True, effect="Alert when a stream is held.")
NOT_FOUND_ALERT_PERCENT = env.integer(
    "NOT_FOUND_ALERT_PERCENT",
    20,
    "Alert when this percentage of a stream's events in a day concern users that its server does not find; 0: never.",
)
NOT_FOUND_ALERT_USERS = env.integer(
    "NOT_FOUND_ALERT_USERS", 10, "Minimum number of events without a found user for the alert of NOT_FOUND_ALERT_PERCENT.", minimum=1
)
DEAD_LETTER_ALERT_PERIOD_SECONDS = env.number(
    "DEAD_LETTER_ALERT_PERIOD_SECONDS", 86400.0, "Period in which the same alert of a stream is sent only once.", minimum=60
)
ALERT_WEBHOOK_URL = env.text(
    "ALERT_WEBHOOK_URL", "", "URL to which the service posts the alerts of all tenants, in addition to mail; empty: mail only."
)
ALERT_WEBHOOK_SECRET = env.secret(
    "ALERT_WEBHOOK_SECRET", "", "Key that signs the posts to ALERT_WEBHOOK_URL (Standard Webhooks), written as whsec_ followed by base64."
)
OUTBOUND_PRIVATE_NETWORKS = env.listing("OUTBOUND_PRIVATE_NETWORKS", "", "Private networks that outbound requests may reach.")
OUTBOUND_ALLOW_HTTP = env.flag("OUTBOUND_ALLOW_HTTP", default=False, effect="Let outbound requests use plain http.")
OUTBOUND_CA_FILE = env.text(
    "OUTBOUND_CA_FILE", "", "PEM file of certificate authorities that are trusted in addition to the public authorities."
)
PROVIDER_ADDRESSES = env.replacements(
    "PROVIDER_ADDRESSES",
    "URLs that replace the URLs of social providers, as strategy.name=URL: for GitHub Enterprise, or a provider with new URLs.",
)
DNS_SERVERS = env.servers("DNS_SERVERS", 53, "DNS servers for the TXT records of custom domains; empty: the DNS servers of the machine.")
DNS_LOOKUP_SECONDS = env.number("DNS_LOOKUP_SECONDS", 4.0, "Timeout of the DNS query that verifies a custom domain.", minimum=0.1)
OUTBOUND_ADDRESSES = env.listing(
    "OUTBOUND_ADDRESSES", "", "IP addresses of outbound requests, as region=address; the admin shows them to operators."
)

# --- Celery -----------------------------------------------------------------------------------------------------------
BROKER_URL = env.secret("BROKER_URL", "", "The queue of the workers, such as RabbitMQ: amqp://user:password@host/vhost; empty: REDIS_URL.")
vars().update(celery_settings(broker=BROKER_URL or REDIS_URL, prefix=REDIS_PREFIX, data_dir=DATA_DIR))

# --- Logs -------------------------------------------------------------------------------------------------------------
LOG_LEVEL = env.text("LOG_LEVEL", "INFO", "Minimum severity of logged lines.", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
LOG_FORMAT = env.text("LOG_FORMAT", "console", "Readable lines, or one JSON object per line.", choices=("console", "json"))
LOGGING = logging_settings(level=LOG_LEVEL, as_json=LOG_FORMAT == "json")
configure_structlog()

# --- Django -----------------------------------------------------------------------------------------------------------
INSTALLED_APPS = frameworks.INSTALLED_APPS
MIDDLEWARE = frameworks.middleware(is_traced=bool(TRACING_ENDPOINT))
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
AUTH_USER_MODEL = "identity.Staff"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# The first hasher makes hashes, and the second checks imported hashes. A login replaces an imported hash by a hash of the first hasher.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher", "identity.hashers.ImportedPasswordHasher"]
AUTH_PASSWORD_VALIDATORS = frameworks.AUTH_PASSWORD_VALIDATORS
TEMPLATES = frameworks.templates(BASE_DIR / "templates")
LANGUAGE_CODE = "en"
# Languages of hosted pages, mails and messages: the languages with a catalogue in `locale`. The admin is in English (ADR 0099).
LANGUAGES = [("en", "English"), ("de", "German"), ("fr", "French"), ("es", "Spanish"), ("ja", "Japanese"), ("ar", "Arabic")]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True
FORMAT_MODULE_PATH = ["config.formats"]
STATIC_URL = "/static/"
# Static files are served from the installed packages, which are indexed at the start, so `collectstatic` is not needed.
WHITENOISE_USE_FINDERS = True
WHITENOISE_ALLOW_ALL_ORIGINS = False
STATICFILES_DIRS = [BASE_DIR / "static"]
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
LOGIN_REDIRECT_URL = "/admin/"

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not INSECURE_HTTP
SESSION_COOKIE_NAME = "staff" if INSECURE_HTTP else "__Host-staff"
CSRF_COOKIE_NAME = "csrf" if INSECURE_HTTP else "__Host-csrf"
SECURE_HSTS_SECONDS = 0 if INSECURE_HTTP else 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = not INSECURE_HTTP
SECURE_SSL_REDIRECT = not INSECURE_HTTP
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# The toolkit's six models are in authapi from the first migration on, because they cannot be swapped later.
OAUTH2_PROVIDER_APPLICATION_MODEL = "authapi.Client"
OAUTH2_PROVIDER_GRANT_MODEL = "authapi.AuthorizationCode"
OAUTH2_PROVIDER_ACCESS_TOKEN_MODEL = "authapi.AccessToken"
OAUTH2_PROVIDER_REFRESH_TOKEN_MODEL = "authapi.RefreshToken"
OAUTH2_PROVIDER_ID_TOKEN_MODEL = "authapi.IDToken"
OAUTH2_PROVIDER_DEVICE_GRANT_MODEL = "authapi.DeviceGrant"

_LIVES = {"ACCESS_TOKEN": ACCESS_TOKEN_SECONDS, "ID_TOKEN": ID_TOKEN_SECONDS, "AUTHORIZATION_CODE": AUTHORIZATION_CODE_SECONDS}
OAUTH2_PROVIDER = frameworks.OAUTH2_PROVIDER | {f"{name}_EXPIRE_SECONDS": seconds for name, seconds in _LIVES.items()}
SILENCED_SYSTEM_CHECKS = frameworks.SILENCED_SYSTEM_CHECKS
REST_FRAMEWORK = frameworks.REST_FRAMEWORK
SPECTACULAR_SETTINGS = frameworks.SPECTACULAR_SETTINGS
