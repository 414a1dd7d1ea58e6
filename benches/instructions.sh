#!/bin/sh
# Instructions of one call, counted by valgrind: the run of 2N calls less that of N, so that starting up is no part of it.
# `benches/instructions.sh [PROGRAM]` prints a table and fails where a bound is broken; without PROGRAM it builds one.
# The bounds are those of the design: against serde_json checking the same bytes, against matchit over the same
# paths, and 2.2 where there is twice as much.
set -eu
program=${1:-}
if [ -z "$program" ]; then
    program=$(cargo bench --no-run --bench instructions --message-format json |
        sed -n 's/.*"executable":"\([^"]*instructions[^"]*\)".*/\1/p')
fi

collected() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$1" "$2" "$3" 2>&1 |
        awk '/Collected/ { print $4; found = 1 } END { exit !found }'
}

# per_call CASE SIZE N
per_call() {
    once=$(collected "$1" "$2" "$3")
    twice=$(collected "$1" "$2" "$(($3 * 2))")
    echo "$(((twice - once) / $3))"
}

broken=0
# row CASE SIZE COUNT BASE BOUND, with 0 for no bound
row() {
    ratio=$(awk "BEGIN { printf \"%.2f\", $3 / $4 }")
    verdict=$(awk "BEGIN { if ($5 && $3 > $4 * $5) print \"broken\" }")
    printf '%-28s %6s %10s %7s %6s %s\n' "$1" "$2" "$3" "$ratio" "$5" "$verdict"
    if [ -n "$verdict" ]; then broken=1; fi
}

# against BASE SIZE N BOUND CASE...
against() {
    base=$(per_call "$1" "$2" "$3")
    row "$1" "$2" "$base" "$base" 0
    size=$2 times=$3 bound=$4
    shift 4
    for name in "$@"; do
        row "$name" "$size" "$(per_call "$name" "$size" "$times")" "$base" "$bound"
    done
}

# grows CASE: 2,000 elements or members beside 1,000
grows() {
    base=$(per_call "$1" 1000 4)
    row "$1" 1000 "$base" "$base" 0
    row "$1" 2000 "$(per_call "$1" 2000 4)" "$base" 2.2
}

printf '%-28s %6s %10s %7s %6s\n' case size count ratio bound
against 'serde_json body' 200 500 2.5 'carried to rpc' 'one hole to rpc'
against 'serde_json message' 200 500 2.5 'carried to rest' 'one hole to rest'
against 'serde_json body' 16384 20 1.3 'carried to rpc' 'one hole to rpc'
against 'serde_json message' 16384 20 1.3 'carried to rest' 'one hole to rest'
for size in 200 16384; do
    against 'serde_json twelve body' $size 100 3 'twelve holes to rpc'
    against 'serde_json twelve message' $size 100 3 'twelve holes to rest'
    against 'serde_json twelve answer' $size 100 3 'twelve holes answer to rpc'
    against 'serde_json twelve response' $size 100 3 'twelve holes answer to rest'
done
against matchit 1000 2000 2 'select rest'
against matchit 1000 2000 0 'select rpc' 'select tool'
for name in carried 'one hole' 'twelve holes' 'twelve holes answer' list; do
    for side in rpc rest; do
        grows "$name to $side many"
    done
done
grows 'compare many'
grows 'compare unordered many'
exit $broken
