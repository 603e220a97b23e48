#!/bin/sh
# The heap calls of a program from its start: app_trace_bpftrace.sh LOG PROGRAM [ARGUMENT]...
#
# As root. The program waits before its first instruction until bpftrace watches it. LIBC in the environment names the
# file of the C library where the program's is not found.
set -eu
if [ $# -lt 2 ]; then
    echo "usage: $0 LOG PROGRAM [ARGUMENT]..." >&2
    exit 2
fi
log=$1
shift
libc=${LIBC:-$(ldd "$(command -v "$1")" | sed -n 's/.* => \(.*libc\.so[^ ]*\) .*/\1/p')}
if [ ! -f "$libc" ]; then
    echo "$0: no C library found for $1; name its file: LIBC=FILE $0 ..." >&2
    exit 1
fi

sh -c 'kill -STOP $$; exec "$@"' sh "$@" &
program=$!
trap 'kill -KILL $program 2>/dev/null || :' EXIT
until grep -q '^State:[[:space:]]*T' "/proc/$program/status"; do
    sleep 0.05
done
: >"$log"
BPFTRACE_PERF_RB_PAGES=${BPFTRACE_PERF_RB_PAGES:-4096} \
    bpftrace -p "$program" "$(dirname "$0")/app_trace.bt" "$libc" "$program" >"$log" &
tracer=$!
until grep -q '^heapwright' "$log"; do
    if ! kill -0 "$tracer" 2>/dev/null; then
        echo "$0: bpftrace does not run here: $(head -n 1 "$log")" >&2
        exit 1
    fi
    sleep 0.05
done
kill -CONT "$program"
status=0
wait "$program" || status=$?
trap - EXIT
wait "$tracer" || :
exit "$status"
