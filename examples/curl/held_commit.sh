#!/usr/bin/env bash
# A commit is in flight while its group rebalances without it: played with curl, to a consumer in any language.
#
#   koordinator serve --control-port 9080 --topic orders:2 &
#   examples/curl/held_commit.sh http://127.0.0.1:9080 python examples/curl/consumer.py
#
# The consumer is started with the bootstrap servers, the topic and the group as arguments.
set -euo pipefail
control=$1/v1/clusters/default
shift

# ask METHOD PATH [JSON]: what the server says; a refusal ends the script
ask() { curl --silent --show-error --fail-with-body --request "$1" "$control$2" ${3:+--data "$3"}; }
# field NAME: the first field of that name in the JSON on stdin
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" | head -n 1; }
says() { echo "$1"; [ "$2" = "$3" ] || { echo "  expected $3, got $2" >&2; exit 1; }; }

"$@" "$(ask GET '' | field bootstrap_servers)" orders svc &
consumer=$!
trap 'kill $consumer 2>/dev/null; wait $consumer || true' EXIT

says "one consumer, and the group is stable" "$(ask GET '/groups/svc/wait?state=Stable&members=1&timeout=30')" true

hold=$(ask POST /holds '{"match": {"api": "OffsetCommit", "group": "svc", "client_id": "svc-1"}}' | field id)
ask POST /topics/orders/records '{"records": ["an order"]}' >/dev/null
entered=$(ask GET "/holds/$hold/entered?timeout=30")
says "its commit is held" "$(field api <<<"$entered")" OffsetCommit

ask POST /groups/svc/puppets/peer '{"topics": ["orders"]}' >/dev/null
ask POST /groups/svc/puppets/peer/join >/dev/null
says "a second member joins" "$(ask GET '/groups/svc/wait?state=PreparingRebalance&timeout=30')" true
fired=$(ask POST /groups/svc/actions/expire_join_phase)
says "nobody waits for the first one any longer" "$(field kind <<<"$fired")" join

ask POST "/holds/$hold/release" >/dev/null
verdict=$(ask POST /groups/svc/verify/requests \
  '{"api": "OffsetCommit", "error": "UNKNOWN_MEMBER_ID", "client_id": "svc-1", "times": 1, "timeout": 30}')
says "the commit is refused, once" "$(grep -o '"ok":true' <<<"$verdict")" '"ok":true'
says "the consumer comes back by itself: a stable group of two" \
  "$(ask GET '/groups/svc/wait?state=Stable&members=2&timeout=60')" true
