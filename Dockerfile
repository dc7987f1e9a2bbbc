# One image for web, worker, scheduler and migrations; the command selects the role (compose.yaml). Pin the base image by digest.
FROM python:3.11.14-slim-bookworm AS packages
# `tracing` adds the packages for TRACING_ENDPOINT.
ARG REQUIREMENTS=base
WORKDIR /opt/identity
COPY requirements/base.lock requirements/tracing.lock requirements/
RUN python -m venv .venv && .venv/bin/pip install --no-cache-dir --require-hashes --requirement requirements/${REQUIREMENTS}.lock

FROM python:3.11.14-slim-bookworm
RUN useradd --system --uid 10001 --user-group --home-dir /var/lib/identity --create-home identity
WORKDIR /opt/identity
COPY --from=packages /opt/identity/.venv .venv
COPY manage.py LICENSE ./
COPY config config
COPY foundation foundation
COPY identity identity
COPY authapi authapi
COPY events events
COPY provisioning provisioning
COPY static static
COPY templates templates
COPY locale locale
COPY deploy/container/healthy.py deploy/container/healthy.py
ENV PATH=/opt/identity/.venv/bin:$PATH \
    DJANGO_SETTINGS_MODULE=config.settings.production \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    DATA_DIR=/var/lib/identity \
    LOG_FORMAT=json
USER 10001:10001
EXPOSE 8000
VOLUME /var/lib/identity
# After SIGTERM, a web process closes its event streams within 8 seconds, answers the remaining requests, and ends. Stop it with a grace
# period of 25 seconds.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s CMD ["python", "deploy/container/healthy.py"]
CMD ["python", "-m", "uvicorn", "--host", "0.0.0.0", "--port", "8000", "--http", "config.http_protocol:HttpProtocol", "--ws", "none", "--no-access-log", "--no-server-header", "--no-proxy-headers", "--backlog", "4096", "--limit-concurrency", "20000", "--timeout-keep-alive", "75", "--timeout-graceful-shutdown", "12", "config.asgi:application"]
