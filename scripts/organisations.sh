#!/usr/bin/env bash
# Two organisations on six real nodes of this machine: an allowed job runs, a denied one is refused by the host whoever
# forwards it, and a revoked user starts nothing more. Prints what it sees, and ends with 1 at the first surprise.
#
#   scripts/organisations.sh [PATH-OF-SHOAL]
set -euo pipefail

shoal=$(realpath "${1:-target/debug/shoal}")
work=$(mktemp -d)
pids=()
finish() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

at() { # at NODE PERSON WORDS…: this program for a node, with a person's keys
    local node=$1 person=$2
    shift 2
    SHOAL_CONFIG=$work/$person "$shoal" --home "$work/node-$node" "$@"
}
surprise() { echo "surprise: $*" >&2; exit 1; }
until_true() { # until_true SECONDS WHAT COMMAND…
    local most=$1 what=$2 began=$SECONDS
    shift 2
    until "$@" >/dev/null 2>&1; do
        ((SECONDS - began < most)) || surprise "waited in vain until $what"
        sleep 0.2
    done
    echo "$what: after $((SECONDS - began)) s"
}
up() { # up NODE FLAGS…
    local node=$1
    shift
    "$shoal" --home "$work/node-$node" node --listen 127.0.0.1:0 --cores 1 --memory 256MiB "$@" \
        >"$work/node-$node.out" 2>"$work/node-$node.log" &
    pids+=($!)
    until_true 60 "node $node answers" at "$node" nobody nodes
}

up 1 --organisation lab-a
for node in 2 3; do up "$node" --join "$(at 1 nobody ticket 2>/dev/null)"; done
for node in 4 5 6; do up "$node" --join "$(at 1 nobody ticket --organisation lab-b 2>/dev/null)"; done
six() { (($(at 1 nobody --json nodes | grep -o '"up":true\|"up": true' | wc -l) == 6)); }
until_true 60 "all six know each other" six

at 1 nobody org trust lab-a "$(at 1 boss-a org new lab-a 2>/dev/null)"
at 1 nobody org trust lab-b "$(at 4 boss-b org new lab-b 2>/dev/null)"
both() { for node in 1 2 3 4 5 6; do (($(at "$node" nobody org show | grep -c '^lab-') == 2)) || return 1; done; }
until_true 60 "all six trust both keys" both
admit() { # admit NODE PERSON LAB BOSS
    local key
    at "$1" "$2" user new "$2" >/dev/null
    key=$(at "$1" "$2" user show | head -1 | awk '{print $2}')
    at "$1" "$2" user keep "$(at "$1" "$4" org admit "$key" --name "$2" --organisation "$3" 2>/dev/null)"
}
admit 1 alice lab-a boss-a
admit 4 bob lab-b boss-b

[[ $(at 1 alice run -- echo hello) == hello ]] || surprise "an allowed job does not run"
echo "alice of lab-a runs on lab-a"
[[ $(at 4 bob run -- echo hello) == hello ]] || surprise "an allowed job does not run"
echo "bob of lab-b runs on lab-b"
gang=$(at 1 alice submit --nodes 4 --time 10s -- true | awk '{print $1}')
denied() { at 1 alice why "$gang" | grep -q 'does not take it'; }
until_true 60 "hosts of lab-b refuse a gang of four that a node of lab-a plans" denied
at 1 alice why "$gang" | grep 'does not take it' | head -3
at 1 alice cancel "$gang" >/dev/null

for node in 4 5 6; do
    printf '[[rules]]\nverdict = "allow"\norganisations = ["lab-a"]\ntime = "1m"\n' >"$work/node-$node/policy.toml"
done
runs() { at 1 alice run --nodes 6 --time 10s -- true; }
until_true 120 "with a rule, a gang runs on all six" runs

began=$SECONDS
at 4 boss-b org revoke "$(at 4 bob user show | head -1 | awk '{print $2}')" --organisation lab-b
known() { for node in 1 2 3 4 5 6; do at "$node" nobody org show | grep -q '^revoked' || return 1; done; }
until_true 60 "all six have heard that bob is revoked" known
at 4 bob run -- true 2>/dev/null && surprise "a revoked user starts a job"
echo "bob starts nothing more, $((SECONDS - began)) s after the revocation"
for node in 1 2 3 4 5 6; do at "$node" nobody audit verify >/dev/null || surprise "the records of node $node are broken"; done
echo "the records of all six are whole"
at 1 alice usage --by organisation
