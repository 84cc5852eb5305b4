#!/usr/bin/env bash
# Restart one of two static consumers in containers. Exit status 0 if that caused no rebalance.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
bootstrap=127.0.0.1:${PORT:-9092}
# a private engine (engine.sh) has no bridge network
if [ "${PYTHON_IMAGE:-}" = koordinator-test-base ]; then
  export COMPOSE_FILE=${COMPOSE_FILE:-compose.yaml:compose.host.yaml}
fi
export COMPOSE_FILE=${COMPOSE_FILE:-compose.yaml}
log=$(mktemp)
describe() { docker compose exec -T koordinator koordinator groups describe --bootstrap-server "$bootstrap" svc; }
generation() {
  docker compose exec -T koordinator python - <<'P'
import json, os, urllib.request
url = f"http://127.0.0.1:{os.environ['KOORDINATOR_CONTROL_PORT']}/v1/clusters/default/groups/svc"
request = urllib.request.Request(url, headers={"Authorization": f"Bearer {os.environ['KOORDINATOR_CONTROL_TOKEN']}"})
print(json.load(urllib.request.urlopen(request))["generation"])
P
}

trap 'docker compose down --volumes --timeout 5 >/dev/null 2>&1; rm -f "$log"' EXIT
echo "== docker compose up --build --wait"
docker compose up --build --wait >/dev/null 2>"$log" || {
  cat "$log" >&2
  docker compose logs >&2
  exit 1
}
describe
before=$(generation)
echo "== docker compose restart consumer-1"
docker compose restart consumer-1 >/dev/null 2>&1
docker compose up --wait consumer-1 >/dev/null 2>&1
describe
after=$(generation)
echo "== generation $before before, $after after"
[ "$before" = "$after" ]
