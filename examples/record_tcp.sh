#!/bin/sh
# Records tcp_transfers.parquet: TCP between two network namespaces over a 10 Mbit/s link with MTU 1500: three
# downloads beside two dozen visitors of a web site. Offloads are off, so that every frame is one that a wire would carry.
# Needs: apt-get install iproute2 ethtool tcpdump curl lighttpd python3; heapwright on the PATH. Run as root.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
output=${1:-$here/tcp_transfers.parquet}
heapwright=${HEAPWRIGHT:-heapwright}
near=heapwright-near-$$
far=heapwright-far-$$
port=18081
work=$(mktemp -d)
# RFC 5737 documentation addresses; they exist only inside the two namespaces.
near_address=192.0.2.1
far_address=192.0.2.2

finish() {
    for pid in ${dump:-} ${server:-}; do kill "$pid" 2>/dev/null || true; done
    wait
    ip netns del "$near" 2>/dev/null || true
    ip netns del "$far" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

ip netns add "$near"
ip netns add "$far"
ip link add near netns "$near" mtu 1500 type veth peer name far netns "$far" mtu 1500
for end in near far; do
    eval "name=\$$end address=\$${end}_address"
    ip -n "$name" addr add "$address/30" dev $end
    ip -n "$name" link set $end up
    ip netns exec "$name" ethtool -K $end tso off gso off gro off tx off rx off sg off >/dev/null
    # A queue of 40 ms at 10 Mbit/s: short enough that TCP fills it and loses packets.
    ip netns exec "$name" tc qdisc add dev $end root tbf rate 10mbit burst 5kb latency 40ms
done

python3 "$here/http_load.py" --root "$work/site" --make
mkdir "$work/site/downloads"
for number in 1 2 3; do head -c 3000000 /dev/urandom >"$work/site/downloads/$number.bin"; done
cat >"$work/lighttpd.conf" <<CONF
server.bind = "$far_address"
server.port = $port
server.document-root = "$work/site"
server.modules = ("mod_dirlisting")
dir-listing.activate = "enable"
server.max-keep-alive-idle = 2
CONF
ip netns exec "$far" lighttpd -D -f "$work/lighttpd.conf" 2>/dev/null &
server=$!
# Headers are enough: the lengths on the wire are kept.
ip netns exec "$near" tcpdump -q -i near -s 96 -w "$work/tcp.pcap" ip 2>"$work/tcpdump" &
dump=$!
for _ in $(seq 100); do
    if grep -q listening "$work/tcpdump" && ip netns exec "$far" ss -Hltn "sport = :$port" | grep -q LISTEN; then break; fi
    sleep 0.1
done

downloads=
for number in 1 2 3; do
    ip netns exec "$near" curl -s -o /dev/null --max-time 60 "http://$far_address:$port/downloads/$number.bin" &
    downloads="$downloads $!"
done
ip netns exec "$near" python3 "$here/http_load.py" --root "$work/site" --address $far_address --port $port --visitors 24 \
    --requests 12 --pause 0.3
# shellcheck disable=SC2086
wait $downloads
kill -INT "$dump"
wait "$dump" || true
dump=
"$heapwright" import "$work/tcp.pcap" -o "$output"
