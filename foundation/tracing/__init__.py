"""Traces of requests and deliveries for OpenTelemetry, off unless `TRACING_ENDPOINT` is set."""
