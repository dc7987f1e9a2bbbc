"""Settings of the smallest site with django-eventstream, which runs in its own environment.

The site stores no events. With storage, every open stream would need a thread and a database connection.
"""

from __future__ import annotations

SECRET_KEY = "only-for-a-measurement-on-loopback"
ALLOWED_HOSTS = ["localhost"]
INSTALLED_APPS = ["django_eventstream"]
DATABASES: dict[str, dict[str, str]] = {}
ROOT_URLCONF = "eventstream_site"
USE_TZ = True
