#!/usr/bin/env bash
# Run a command with a Docker engine: compose/engine.sh COMMAND…
#
# With KOORDINATOR_DOCKER_BOOTSTRAP=1 and without a running engine, start a private one while the command runs. This needs
# root and Debian. The first run installs the engine and creates a substitute for the base image python:X-slim, because
# not every machine can pull images. Builds need the host's network, and so do containers where this machine allows no
# bridge; with a bridge ports can be mapped. The command gets DOCKER_HOST, PYTHON_IMAGE, DOCKER_CONFIG, and
# TESTCONTAINERS_RYUK_DISABLED, since the image of Ryuk cannot be pulled either. The engine's files are in KOORDINATOR_DOCKER_DIR (build/docker).
# Without the variable, just run the command.
set -euo pipefail

if [ "${KOORDINATOR_DOCKER_BOOTSTRAP:-}" != 1 ] || { command -v docker && timeout 20 docker info; } >/dev/null 2>&1; then
  exec "$@"
fi
refuse() { echo "compose/engine.sh: $1" >&2; exit 2; }
[ "$(id -u)" = 0 ] || refuse "a private engine needs root"
[ -f /etc/debian_version ] || refuse "a private engine is installed on Debian only; set DOCKER_HOST to another one"

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
mkdir -p "${KOORDINATOR_DOCKER_DIR:-$root/build/docker}"
dir=$(cd "${KOORDINATOR_DOCKER_DIR:-$root/build/docker}" && pwd -P)
# shellcheck disable=SC1091
. /etc/os-release
export DOCKER_HOST=unix://$dir/docker.sock DOCKER_CONFIG=$dir/config PYTHON_IMAGE=koordinator-test-base
export TESTCONTAINERS_RYUK_DISABLED=true

install_engine() {
  command -v dockerd >/dev/null && command -v debootstrap >/dev/null && return
  echo "== installing Docker's engine and debootstrap" >&2
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends docker.io debootstrap >/dev/null
}

# Docker Compose 2 is in Debian 13 and newer. Unpack its package from this machine's Debian mirror, without installing it.
install_compose() {
  docker compose version >/dev/null 2>&1 && return
  echo "== fetching docker compose" >&2
  local apt=$dir/apt mirror keys=/usr/share/keyrings/debian-archive-keyring.gpg
  mirror=$(find /etc/apt -name '*.sources' -o -name '*.list' | xargs grep -hv '^#' |
    grep -oE 'https?://[^ ]+/debian/?( |$)' | sort | sed -n 1p)
  mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/parts" "$DOCKER_CONFIG/cli-plugins"
  echo "deb [signed-by=$keys] ${mirror% } trixie main" >"$apt/sources.list"
  : >"$apt/status"
  local options=(-qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o "Dir::Etc::sourceparts=$apt/parts"
    -o "Dir::State::lists=$apt/lists" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt"
    -o "Dir::Cache::archives=$apt/archives" -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update
  (cd "$apt" && apt-get "${options[@]}" download docker-compose && dpkg -x docker-compose_*.deb "$apt/compose")
  cp "$apt/compose/usr/libexec/docker/cli-plugins/docker-compose" "$DOCKER_CONFIG/cli-plugins/"
  rm -rf "$apt"
}

start_engine() {
  # not every machine allows a virtual network; Docker chooses one whose addresses this machine does not use
  local network=(--bridge=none)
  if ip link add name koordinator-0 type bridge 2>/dev/null; then
    ip link delete koordinator-0
    network=()
  fi
  setsid dockerd --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false ${network[@]+"${network[@]}"} \
    --storage-driver=overlay2 --data-root="$dir/data" --exec-root="$dir/exec" --pidfile="$dir/docker.pid" \
    -H "$DOCKER_HOST" >"$dir/dockerd.log" 2>&1 </dev/null &
  for _ in $(seq 300); do
    docker info >/dev/null 2>&1 && return
    kill -0 $! 2>/dev/null || break
    sleep 0.1
  done
  tail -n 5 "$dir/dockerd.log" >&2
  refuse "the engine did not start: see $dir/dockerd.log"
}

stop_engine() {
  [ -f "$dir/docker.pid" ] || return 0
  kill "$(cat "$dir/docker.pid")" 2>/dev/null || return 0
  for _ in $(seq 300); do [ -f "$dir/docker.pid" ] || break; sleep 0.1; done
  umount "$dir/exec/netns/default" 2>/dev/null || true
}

# This machine's Debian, with the Python of .venv in the place where the official image has its own.
make_base() {
  docker image inspect "$PYTHON_IMAGE" >/dev/null 2>&1 && return
  echo "== making the base image $PYTHON_IMAGE (once; about a minute)" >&2
  local rootfs=$dir/rootfs prefix version packages
  prefix=$("$python" -c 'import sys; print(sys.base_prefix)')
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  rm -rf "$rootfs"
  if [ "$prefix" = /usr ]; then
    packages=python3,python3-venv
  else
    # the packages with this Python's shared libraries
    packages=$(find "$prefix/bin/python$version" "$prefix/lib/python$version/lib-dynload" -type f -exec ldd {} + |
      awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u | xargs -r readlink -f | sort -u |
      while read -r file; do dpkg -S "$file" 2>/dev/null || dpkg -S "${file#/usr}" 2>/dev/null || true; done |
      cut -d: -f1 | sort -u | paste -sd,)
  fi
  debootstrap --variant=minbase --include="ca-certificates,netbase,tzdata,$packages" "$VERSION_CODENAME" "$rootfs" \
    >"$dir/debootstrap.log" 2>&1 || refuse "no base image: see $dir/debootstrap.log"
  if [ "$prefix" != /usr ]; then
    tar -C "$prefix" --exclude="lib/python$version/test" --exclude="lib/python$version/config-*" --exclude=__pycache__ \
      --exclude='*.a' --exclude="lib/python$version/site-packages" -cf - \
      "bin/python$version" lib/python"$version" $(cd "$prefix" && ls -d lib/libpython"$version"*.so* 2>/dev/null) |
      tar -C "$rootfs/usr/local" -xf -
    mkdir -p "$rootfs/usr/local/lib/python$version/site-packages"
    ldconfig -r "$rootfs"
  fi
  [ "$prefix" = /usr ] || for name in python python3; do ln -sf "python$version" "$rootfs/usr/local/bin/$name"; done
  [ "$prefix" != /usr ] || ln -sf python3 "$rootfs/usr/bin/python"
  rm -rf "$rootfs"/var/cache/apt/archives/*.deb "$rootfs"/var/lib/apt/lists/* "$rootfs"/usr/share/{doc,man,locale}/*
  # this machine's CA certificates, so that builds can reach the same package indexes
  cp /etc/ssl/certs/ca-certificates.crt "$rootfs/etc/ssl/certs/ca-certificates.crt"
  tar -C "$rootfs" -c . | docker import \
    --change 'ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin' --change 'ENV LANG=C.UTF-8' \
    --change 'ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt' --change 'CMD ["python3"]' \
    --change "LABEL koordinator.base='$PRETTY_NAME, Python $version'" - "$PYTHON_IMAGE" >/dev/null
  rm -rf "$rootfs"
}

trap stop_engine EXIT
install_engine
install_compose
start_engine
make_base
"$@"
