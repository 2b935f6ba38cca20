#!/usr/bin/env bash
# Fuzzes all that decodes what comes from outside, one target after another. Ends with 1 at the first panic, and leaves
# the input that made it in fuzz/artifacts. What each has run is in fuzz/target/TARGET.log.
#
#   scripts/fuzz.sh [TARGET…]              all targets, if none is named
#   RUNS=100000 scripts/fuzz.sh            fewer executions of each than the usual 10,000,000
#   KEEP=1 scripts/fuzz.sh                 what is new and worth it goes into the small corpus of the repository
#
# Needs `cargo install cargo-fuzz` and a C++ compiler. The compiler of the repository will do: fuzzing needs flags of it
# that are not for everybody, and RUSTC_BOOTSTRAP lets it take them.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${RUNS:-10000000}
export RUSTC_BOOTSTRAP=1
build() { cargo fuzz build --sanitizer none -O -a; }
build
folder=fuzz/target/$(rustc -vV | sed -n 's/^host: //p')/release
if [ $# -gt 0 ]; then targets=("$@"); else mapfile -t targets < <(cargo fuzz list); fi

for target in "${targets[@]}"; do
    found=fuzz/target/found/$target
    mkdir -p "$found" "fuzz/artifacts/$target"
    log=fuzz/target/$target.log
    if ! nice -n 10 "$folder/$target" "$found" "fuzz/corpus/$target" -runs="$runs" -max_len=1024 -timeout=10 \
        -rss_limit_mb=2048 -artifact_prefix="fuzz/artifacts/$target/" -print_final_stats=1 >"$log" 2>&1; then
        tail -n 30 "$log"
        exit 1
    fi
    grep -E '^Done |stat::number_of_executed_units' "$log" | sed "s/^/$target: /"
    if [ -n "${KEEP:-}" ]; then
        # The shortest inputs that reach what all of them reach, as far as they fit in a few kilobytes.
        least=$(mktemp -d)
        nice -n 10 "$folder/$target" -merge=1 -max_len=256 "$least" "fuzz/corpus/$target" "$found" >>"$log" 2>&1
        room=6144
        for file in $(ls -Sr "$least"); do
            size=$(stat -c %s "$least/$file")
            room=$((room - size))
            [ "$room" -ge 0 ] || break
            cp "$least/$file" "fuzz/corpus/$target/"
        done
        rm -rf "$least"
    fi
done
