"""The wiring of the apps. The only package that imports all of them."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
