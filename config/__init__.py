"""Connects the apps: settings, routes, processes and the admin site. Only this package imports all apps."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
