#!/usr/bin/env bash
# Check the scripts of emulator/pages: format and lint with Biome, types with TypeScript. Fix formatting with --write.
# Without Node.js the checks are skipped, unless KOORDINATOR_REQUIRE names node.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
installed=build/js

skip() {
  if [[ ",${KOORDINATOR_REQUIRE:-}," == *,node,* ]]; then
    echo "$1, and KOORDINATOR_REQUIRE names node" >&2
    exit 1
  fi
  echo "skipped: $1"
  exit 0
}

command -v npm >/dev/null || skip "Node.js with npm is not installed"
if [ ! "$installed/done" -nt tools/js/package.json ]; then
  echo "== installing Biome and TypeScript into $installed (once)"
  mkdir -p "$installed"
  cp tools/js/package.json "$installed/"
  npm --prefix "$installed" install --no-package-lock --no-audit --no-fund --loglevel=error \
    || skip "Biome and TypeScript cannot be installed"
  touch "$installed/done"
fi
"$installed/node_modules/.bin/biome" check --config-path=tools/js --error-on-warnings "$@" emulator/pages/*.js emulator/pages/*.ts
"$installed/node_modules/.bin/tsc" --project tools/js
