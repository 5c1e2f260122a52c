# The gateway as an image: docker build -t openenv-gateway .
# Where another Python is at hand: --build-arg PYTHON_IMAGE=python:3.11-slim (3.11 or newer).
ARG PYTHON_IMAGE=python:3.12-slim

FROM ${PYTHON_IMAGE} AS build
WORKDIR /source
COPY . .
# Without pip in it, the virtual environment is a sixth smaller; the one of the base image installs into it.
RUN python -m venv --without-pip /opt/openenv-gateway \
    && python -m pip --python /opt/openenv-gateway/bin/python install --no-cache-dir --disable-pip-version-check ./client '.[fast]'

FROM ${PYTHON_IMAGE}
COPY --from=build /opt/openenv-gateway /opt/openenv-gateway
# Nothing is ever written but to /tmp: --read-only --tmpfs /tmp is enough.
ENV PATH=/opt/openenv-gateway/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /tmp
# A number, so that an orchestrator can see that it is not root. It needs no entry in /etc/passwd.
USER 10001:10001
EXPOSE 8700
# By http.client, which heeds no proxy variable. /health, not /ready: an environment that is away is no reason for a restart.
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=3 CMD ["python", "-c", "import http.client as h; c = h.HTTPConnection('127.0.0.1', 8700, timeout=4); c.request('GET', '/health'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["openenv-gateway"]
# The demo, which has nothing to protect. Whoever serves something else says who may call: --token-file or --unprotected.
CMD ["serve", "demo", "--host", "0.0.0.0", "--unprotected"]
