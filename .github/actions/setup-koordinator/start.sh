#!/usr/bin/env bash
# Install koordinator, and start a server that ends with the job. Later steps get KOORDINATOR_BOOTSTRAP,
# KOORDINATOR_CONTROL_URL, and the command `koordinator` on PATH.
set -euo pipefail

home="$RUNNER_TEMP/koordinator"
python3 -m venv "$home"
"$home/bin/python" -m pip --disable-pip-version-check --quiet install "$PACKAGE"
# not all of bin/, which has a Python that the job did not choose
mkdir -p "$home/path"
ln -sf "$home/bin/koordinator" "$home/path/koordinator"
echo "$home/path" >>"$GITHUB_PATH"
"$home/bin/koordinator" --version
[ "$SERVE" = true ] || exit 0

read -ra words <<<"$ARGUMENTS"
for topic in $TOPICS; do words+=(--topic "$topic"); done
nohup "$home/bin/koordinator" serve --port "$PORT" --control-port "$CONTROL_PORT" ${words[@]+"${words[@]}"} \
  >"$home/first-line.json" 2>"$home/server.log" </dev/null &
server=$!
for _ in $(seq 300); do
  [ ! -s "$home/first-line.json" ] || break
  kill -0 "$server" 2>/dev/null || break
  sleep 0.1
done
cat "$home/server.log" >&2
[ -s "$home/first-line.json" ] || { echo "::error::koordinator serve did not start"; exit 1; }
"$home/bin/python" - "$home/first-line.json" <<'END'
import json, os, sys

with open(sys.argv[1], encoding="utf-8") as file:
    started = json.load(file)
servers, url = started["bootstrap_servers"], started["control_url"]
with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as outputs:
    outputs.write(f"bootstrap-servers={servers}\ncontrol-url={url}\npid={started['pid']}\n")
with open(os.environ["GITHUB_ENV"], "a", encoding="utf-8") as variables:
    variables.write(f"KOORDINATOR_BOOTSTRAP={servers}\nKOORDINATOR_CONTROL_URL={url}\n")
print(f"koordinator serves clients at {servers}; the live page is {url}")
END
