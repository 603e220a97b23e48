#!/bin/sh
# The heap calls of a program from its start: app_trace_perf.sh LOG PROGRAM [ARGUMENT]...
#
# As root. Probes of the group "heapwright" are put on the C library and taken away again, so one program is
# recorded at a time. LIBC in the environment names the file of the C library where the program's is not found.
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
case $(uname -m) in
x86_64) first=%di second=%si ;;
aarch64) first=%x0 second=%x1 ;;
*)
    echo "$0: where $(uname -m) passes arguments is not known here; use heapwright hooks bpftrace" >&2
    exit 1
    ;;
esac

data=$(mktemp)
remove() {
    perf probe -q -d 'heapwright:*' 2>/dev/null || :
    rm -f "$data"
}
trap remove EXIT
perf probe -q -d 'heapwright:*' 2>/dev/null || :
probe() {
    perf probe -q -x "$libc" "heapwright:$1"
}
probe "malloc=malloc size=$first:u64"
probe "calloc=calloc count=$first:u64 size=$second:u64"
probe "realloc=realloc pointer=$first:x64 size=$second:u64"
probe "memalign=memalign align=$first:u64 size=$second:u64"
probe "aligned_alloc=aligned_alloc align=$first:u64 size=$second:u64"
probe "free=free pointer=$first:x64"
for function in malloc calloc realloc memalign aligned_alloc; do
    probe "$function=$function%return pointer=\$retval:x64"
done
status=0
perf record -q -m 8M -o "$data" -e 'heapwright:*' -- "$@" || status=$?
perf script -i "$data" --ns --show-lost-events -F pid,tid,cpu,time,event,trace >"$log"
exit "$status"
