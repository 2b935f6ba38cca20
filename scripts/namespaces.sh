#!/usr/bin/env bash
# A grid whose nodes each have a network of their own: 32 nodes in network namespaces of this machine, joined by a
# bridge that lies in one more, and 1,000 jobs of all sizes given to all of them. Nothing is left behind.
#
#   scripts/namespaces.sh [NODES [JOBS]]        SHOAL=program, SEED=number, LOSS=percent of packets that are lost
set -euo pipefail

nodes=${1:-32} jobs=${2:-1000} loss=${LOSS:-0}
shoal=$(realpath "${SHOAL:-target/release/shoal}")
RANDOM=${SEED:-1}
mark="shoal-$$"

skip() { echo "skipped: $1" >&2; exit 0; }
die() { echo "error: $1" >&2; exit 1; }

[ -x "$shoal" ] || die "$shoal is no program; build it with cargo build --release, or name it with SHOAL"
[ "$nodes" -ge 16 ] && [ "$nodes" -le 200 ] || die "NODES is $nodes: expected 16 to 200"
[ "$jobs" -ge 1 ] || die "JOBS is $jobs: expected some"
command -v ip > /dev/null || skip "there is no program ip (package iproute2)"
ip netns add "$mark-hub" 2> /dev/null || skip "this user may not make network namespaces; root may, mostly"

folder=$(mktemp -d -t shoal-namespaces-XXXXXX)

clear_away() {
    for space in $(ip netns list | awk '{print $1}' | grep "^$mark-" || true); do
        # All that runs in a namespace of ours was started by us.
        ip netns pids "$space" 2> /dev/null | xargs -r kill -9 2> /dev/null || true
        ip netns del "$space" 2> /dev/null || true
    done
    rm -rf "$folder"
}
trap clear_away EXIT
trap 'exit 130' INT TERM

inside() { local number=$1; shift; ip netns exec "$mark-$number" "$@"; }
ask() { local number=$1; shift; inside "$number" "$shoal" --home "$folder/node-$number" "$@"; }
said() { printf '%7.1fs  %s\n' "$(awk "BEGIN{print $(date +%s.%N) - $began}")" "$1" >&2; }
began=$(date +%s.%N)

ip -n "$mark-hub" link add name bridge type bridge
ip -n "$mark-hub" link set bridge up
for number in $(seq "$nodes"); do
    ip netns add "$mark-$number"
    ip -n "$mark-$number" link add eth0 type veth peer name "veth$number" netns "$mark-hub"
    ip -n "$mark-hub" link set "veth$number" master bridge up
    ip -n "$mark-$number" addr add "10.77.0.$number/24" dev eth0
    ip -n "$mark-$number" link set eth0 up
    ip -n "$mark-$number" link set lo up
    if [ "$loss" != 0 ]; then
        inside "$number" tc qdisc add dev eth0 root netem loss "$loss%" || skip "tc cannot lose packets here"
    fi
done
said "$nodes namespaces"

node() {
    local number=$1; shift
    mkdir -p -m 700 "$folder/node-$number"
    inside "$number" "$shoal" --home "$folder/node-$number" node --background --listen "10.77.0.$number:4433" \
        --cores 1 --memory 1GiB --name "node-$number" "$@" > /dev/null
}
node 1
for number in $(seq 2 "$nodes"); do
    # On a machine that does much else an answer may be late; a ticket is good once.
    for try in 1 2 3 4 5; do
        if node "$number" --join "$(ask 1 ticket 2> /dev/null)" 2> "$folder/join"; then break; fi
        [ "$try" -lt 5 ] || { cat "$folder/join" >&2; die "node $number does not get in"; }
        rm -rf "$folder/node-$number"
    done
done
until [ "$(ask 1 --json nodes | grep -c '"up": true')" = "$nodes" ] \
    && [ "$(ask "$nodes" --json nodes | grep -c '"up": true')" = "$nodes" ]; do
    [ "$(awk "BEGIN{print ($(date +%s.%N) - $began > 300)}")" = 0 ] || die "the nodes do not find each other"
    sleep 0.2
done
said "$nodes nodes know each other"

# Of ten jobs, eight are for one node; the others are gangs of 2 to 16.
submit() {
    local number=$1 size=1 entry=$((RANDOM % nodes + 1))
    if [ $((number % 10)) = 0 ]; then size=$((RANDOM % 15 + 2)); fi
    if [ $((number % 10)) = 5 ]; then size=$((RANDOM % 3 + 2)); fi
    local more=()
    [ $((number % 7)) != 0 ] || more=(--at-most-once)
    local id
    id=$(ask "$entry" --json submit --nodes "$size" --time 10s --plan 0s "${more[@]}" -- \
        sh -c "sleep 0.$((RANDOM % 5)); echo rank \$SHOAL_RANK of \$SHOAL_NODES" \
        | sed -n 's/^ *"id": "\([0-9a-f]*\)".*/\1/p' | head -1)
    echo "$entry $size $id" >> "$folder/jobs"
}
for number in $(seq "$jobs"); do submit "$number"; done
gangs=$(awk '$2 > 1' "$folder/jobs" | wc -l)
largest=$(sort -k2,2n "$folder/jobs" | tail -1 | cut -d' ' -f2)
said "$jobs jobs submitted, $gangs of them gangs of up to $largest"

for number in $(seq "$nodes"); do
    mapfile -t own < <(awk -v entry="$number" '$1 == entry {print $3}' "$folder/jobs")
    [ "${#own[@]}" -gt 0 ] || continue
    ask "$number" --json wait --timeout 20m "${own[@]}" > "$folder/ended-$number" 2> "$folder/wrong-$number" || true
done
cat "$folder"/ended-* | sed -n 's/^ *"state": "\([a-z-]*\)".*/\1/p' | sort | uniq -c > "$folder/states"
said "all waited for: $(awk '{printf "%s%s %s", (NR > 1 ? ", " : ""), $1, $2}' "$folder/states")"
skews=$(cat "$folder"/ended-* | sed -n 's/^ *"skew": "\(.*\)".*/\1/p' | wc -l)
said "$skews gangs have told how far apart their ranks started"

left=0
for number in $(seq "$nodes"); do
    reserved=$(ask "$number" --json calendar | grep -c '"job"' || true)
    left=$((left + reserved))
done
said "$left reservations are left"

finished=$(awk '$2 == "finished" {print $1}' "$folder/states")
clear_away
trap - EXIT
! ip netns list | grep -q "^$mark-" || die "a namespace is left"
said "no namespace is left"
[ "${finished:-0}" = "$jobs" ] || die "${finished:-0} of $jobs jobs finished"
[ "$left" = 0 ] || die "$left reservations are left"
