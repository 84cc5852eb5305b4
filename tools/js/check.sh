#!/usr/bin/env bash
# Check the scripts of emulator/pages and clients/node: format and lint with Biome, types with TypeScript. Fix formatting
# with --write. `check.sh types` writes the type declarations of clients/node, which the other call compares.
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
bin=$installed/node_modules/.bin

# The declarations of clients/node are made from the comments of its modules.
declare_types() {
  "$bin/tsc" --project clients/node --typeRoots "$PWD/$installed/node_modules/@types" --outDir "$1"
}
if [ "${1:-}" = types ]; then
  declare_types "$PWD/clients/node/types"
  exit
fi
"$bin/biome" check --config-path=tools/js --error-on-warnings "$@" emulator/pages/*.js emulator/pages/*.ts \
  clients/node/src/{cluster,handle,index,start}.js clients/node/tests/*.*js clients/node/*.json
"$bin/tsc" --project tools/js
declare_types "$PWD/$installed/types"
diff -r "$installed/types" clients/node/types || { echo "clients/node/types is not current: make clients" >&2; exit 1; }
