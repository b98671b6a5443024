#!/bin/sh
# Runs every fuzz target for so many seconds (60 unless told), and fails when one finds something.
set -eu

seconds=${1:-60}
here=$(cd "$(dirname "$0")" && pwd)
cd "$here"

command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --locked

# The instrumentation needs unstable flags; this lets the stable toolchain take them.
export RUSTC_BOOTSTRAP=1

cargo fuzz build --fuzz-dir "$here"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0
for target in $(cargo fuzz list --fuzz-dir "$here"); do
    mkdir -p "corpus/$target" "artifacts/$target"
    # Seeds come second: what is found goes to the first folder.
    if cargo fuzz run --fuzz-dir "$here" "$target" "corpus/$target" "seeds/$target" -- \
        -max_total_time="$seconds" -timeout=10 -print_final_stats=1 >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        printf '%-14s ok, %s inputs in %s s\n' "$target" "$runs" "$seconds"
        continue
    fi
    failed=1
    input=$(sed -n 's/^.*Test unit written to //p' "$log" | tail -n 1)
    if [ -z "$input" ]; then
        printf '%-14s FAILED without an input to blame:\n' "$target"
        tail -n 40 "$log"
        continue
    fi
    printf '%-14s FAILED on fuzz/%s\n' "$target" "${input#"$here/"}"
    grep -E -A 3 -m 1 "panicked at|ERROR: |SUMMARY: " "$log" | sed 's/^/    /' || true
    printf '    again:   RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir fuzz %s fuzz/%s\n' "$target" "${input#"$here/"}"
    printf '    smaller: RUSTC_BOOTSTRAP=1 cargo fuzz tmin --fuzz-dir fuzz %s fuzz/%s\n' "$target" "${input#"$here/"}"
done
exit "$failed"
