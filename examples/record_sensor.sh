#!/bin/sh
# Records the three programs that stand in for a sensor node's (papers: sensor): tls, huffman, xml.
# Needs: apt-get install gcc libmbedtls-dev libexpat1-dev; heapwright on the PATH. Run as any user.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
output=${1:-$here/../papers/heapwright_papers/traces}
heapwright=${HEAPWRIGHT:-heapwright}
work=$(mktemp -d)
server=

finish() {
    if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; fi
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

flags="-std=gnu11 -O2 -Wall -Wextra"
gcc $flags "$here/sensor/huffman.c" -o "$work/huffman"
gcc $flags "$here/sensor/xml.c" -o "$work/xml" -lexpat
gcc $flags "$here/sensor/tls.c" -o "$work/tls" -lmbedtls -lmbedx509 -lmbedcrypto

python3 - >"$work/readings.xml" <<'PYTHON'
print('<?xml version="1.0"?>\n<readings xmlns="urn:example:meters">')
for meter in range(12):
    print(f'  <meter id="m{meter}" place="house {meter * 7 % 31}">')
    for hour in range(8 + meter % 5):
        value = 17 * (meter + 3) * (hour + 2) % 997 + 1
        print(f'    <reading unit="Wh"><start>{hour:02}:00</start><value>{value}</value><quality>good</quality></reading>')
    print("  </meter>")
print("</readings>")
PYTHON

mkdir -p "$output"
"$heapwright" record -o "$output/huffman.parquet" -- "$work/huffman" "$here/../docs/recipes.md"
"$heapwright" record -o "$output/xml.parquet" -- "$work/xml" "$work/readings.xml"
"$work/tls" server "$work/socket" &
server=$!
for _ in $(seq 100); do
    if [ -S "$work/socket" ]; then break; fi
    sleep 0.1
done
"$heapwright" record -o "$output/tls.parquet" -- "$work/tls" node "$work/socket"
wait "$server"
server=
