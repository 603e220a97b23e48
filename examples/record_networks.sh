#!/bin/sh
# Records a packet table between two network namespaces: record_networks.sh NAME [OUTPUT], with NAME one of
#   tcp_transfers        downloads and a web site over 10 Mbit/s: curl, lighttpd
#   tcp_lossy            iperf3 in both directions; receivers lose 2 % of the frames
#   quic_downloads       HTTP/3 downloads and pages over 10 Mbit/s: ngtcp2
#   sensor_frames        MQTT and CoAP at 250 kbit/s in IPv4 packets of at most 102 bytes: mosquitto, libcoap
#   voip_calls           four two-way calls, G.711 at 20 ms: baresip
#   modbus_polls         polls of eight Modbus devices: pymodbus
#   opcua_subscriptions  OPC UA clients that subscribe, read and write: asyncua
# Offloads are off, so that every frame is one that a wire would carry. Run as root, with heapwright on the PATH.
# Needs: apt-get install iproute2 ethtool tcpdump python3, and for each table what examples/README.md names.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
table=${1:?which table}
output=${2:-$here/$table.parquet}
heapwright=${HEAPWRIGHT:-heapwright}
python=${PYTHON:-python3}
near=heapwright-near-$$
far=heapwright-far-$$
port=18081
work=$(mktemp -d)
servers=
# RFC 5737 and RFC 7042 documentation addresses; they exist only inside the two namespaces.
near_address=192.0.2.1
far_address=192.0.2.2
near_mac=00:00:5e:00:53:01
far_mac=00:00:5e:00:53:02
# A queue of 40 ms at 10 Mbit/s: short enough that TCP fills it and loses packets.
mtu=1500 queue="rate 10mbit burst 5kb latency 40ms"

finish() {
    # shellcheck disable=SC2086
    for pid in ${dump:-} $servers; do kill "$pid" 2>/dev/null || true; done
    wait
    ip netns del "$near" 2>/dev/null || true
    ip netns del "$far" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

in_near() { ip netns exec "$near" "$@"; }
serve() {
    ip netns exec "$far" "$@" >>"$work/servers" 2>&1 &
    servers="$servers $!"
}
listening() {
    for _ in $(seq 100); do
        if ip netns exec "$far" ss -Hltun "sport = :$1" | grep -q .; then return; fi
        sleep 0.1
    done
    cat "$work/servers" >&2
    exit 1
}
wait_for() {
    for pid in "$@"; do wait "$pid"; done
}

tcp_transfers() {
    "$python" "$here/http_load.py" --root "$work/site" --make
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
    serve lighttpd -D -f "$work/lighttpd.conf"
    listening $port
    capture
    downloads=
    for number in 1 2 3; do
        in_near curl -s -o /dev/null --max-time 60 "http://$far_address:$port/downloads/$number.bin" &
        downloads="$downloads $!"
    done
    in_near "$python" "$here/http_load.py" --root "$work/site" --address $far_address --port $port --visitors 24 \
        --requests 12 --pause 0.3
    # shellcheck disable=SC2086
    wait_for $downloads
}

tcp_lossy() {
    for name in "$near" "$far"; do
        ip netns exec "$name" nft -f - <<RULES
add table ip loss
add chain ip loss in { type filter hook input priority 0; }
add rule ip loss in numgen random mod 100 < 2 drop
RULES
    done
    serve iperf3 -s -p $port
    listening $port
    capture
    in_near iperf3 -c $far_address -p $port -t 5 -P 3 --bidir -l 8K >"$work/iperf3"
}

quic_downloads() {
    "$python" "$here/http_load.py" --root "$work/site" --make
    for number in 1 2 3; do head -c 3000000 /dev/urandom >"$work/site/$number.bin"; done
    openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=example.com -keyout "$work/key" -out "$work/cert" 2>/dev/null
    serve gtlsserver -q -d "$work/site" $far_address $port "$work/key" "$work/cert"
    listening $port
    capture
    clients=
    for number in 1 2 3; do
        in_near gtlsclient -q --exit-on-all-streams-close $far_address $port "https://example.com/$number.bin" &
        clients="$clients $!"
    done
    for folder in pages images styles pages images styles pages images styles pages images styles; do
        # Ten of the fifteen files: the small ones.
        urls=$(cd "$work/site" && for file in "$folder"/0*.txt; do echo "https://example.com/$file"; done)
        # shellcheck disable=SC2086
        in_near gtlsclient -q --exit-on-all-streams-close $far_address $port $urls &
        clients="$clients $!"
        sleep 0.4
    done
    # shellcheck disable=SC2086
    wait_for $clients
}

sensor_frames() {
    cat >"$work/mosquitto.conf" <<CONF
listener $port $far_address
allow_anonymous true
persistence false
log_dest none
user $(id -un)
CONF
    serve mosquitto -c "$work/mosquitto.conf"
    serve coap-server-notls -A $far_address -d 20
    listening $port
    listening 5683
    capture
    clients=
    for number in 1 2 3 4; do
        for _ in $(seq 40); do
            echo "{\"value\":$number.5,\"unit\":\"C\"}" >"$work/reading-$number"
            in_near coap-client-notls -B 5 -b 64 -m put -t json -f "$work/reading-$number" "coap://$far_address/sensor-$number"
            in_near coap-client-notls -B 5 -b 64 -m get "coap://$far_address/.well-known/core"
            in_near coap-client-notls -B 5 -b 64 -m get "coap://$far_address/time"
            sleep 0.3
        done >/dev/null 2>&1 &
        clients="$clients $!"
    done
    in_near "$python" "$here/mqtt_load.py" --address $far_address --port $port --seconds 30 --messages 600 \
        --sensors 12 --subscribers 3 --quantities temperature,humidity,door
    # shellcheck disable=SC2086
    wait_for $clients
}

phone() { # NAMESPACE ADDRESS NUMBER [baresip's options]
    mkdir "$work/phone-$2-$3"
    cat >"$work/phone-$2-$3/config" <<CONF
module_path /usr/lib/baresip/modules
module g711.so
module ausine.so
module aufile.so
module_app account.so
module_app menu.so
sip_listen $2:50${3}0
ausrc_srate 48000
ausrc_channels 2
audio_source ausine,440
audio_player aufile,$work/phone-$2-$3/heard.wav
rtp_ports 2${3}000-2${3}010
rtp_stats yes
CONF
    echo "<sip:phone@$2:50${3}0>;regint=0;answermode=auto;audio_codecs=PCMA/8000/1" >"$work/phone-$2-$3/accounts"
    touch "$work/phone-$2-$3/contacts"
    phone=$1 folder=$work/phone-$2-$3
    shift 3
    ip netns exec "$phone" baresip -f "$folder" "$@" >>"$work/servers" 2>&1 </dev/null &
    servers="$servers $!"
}

voip_calls() {
    for number in 1 2 3 4; do phone "$far" $far_address $number; done
    for number in 1 2 3 4; do listening 50${number}0; done
    capture
    for number in 1 2 3 4; do
        phone "$near" $near_address $number -t 20 -e "/dial sip:phone@$far_address:50${number}0"
        sleep 0.7
    done
    sleep 22
}

modbus_polls() {
    serve "$python" "$here/industry_load.py" modbus-server --address $far_address --port $port
    listening $port
    capture
    in_near "$python" "$here/industry_load.py" modbus-client --address $far_address --port $port
}

opcua_subscriptions() {
    serve "$python" "$here/industry_load.py" opcua-server --address $far_address --port $port
    listening $port
    capture
    in_near "$python" "$here/industry_load.py" opcua-client --address $far_address --port $port
}

capture() {
    # Headers are enough: the lengths on the wire are kept.
    ip netns exec "$near" tcpdump -q -i near -s 96 -w "$work/$table.pcap" ip 2>"$work/tcpdump" &
    dump=$!
    for _ in $(seq 100); do
        if grep -qs listening "$work/tcpdump"; then return; fi
        sleep 0.1
    done
}

if ! grep -q "^#   $table  " "$0"; then
    sed -n '2,9s/^# //p' "$0" >&2
    exit 2
fi
if [ "$table" = sensor_frames ]; then
    # A frame of IEEE 802.15.4 has 127 bytes: 25 of header and check sequence leave 102. The link sends 250 kbit/s.
    mtu=102 queue="rate 250kbit burst 1kb latency 400ms"
fi
ip netns add "$near"
ip netns add "$far"
ip link add near address $near_mac netns "$near" mtu $mtu type veth peer name far address $far_mac netns "$far" mtu $mtu
for end in near far; do
    eval "name=\$$end address=\$${end}_address"
    ip -n "$name" addr add "$address/30" dev $end
    ip -n "$name" link set $end up
    ip netns exec "$name" ethtool -K $end tso off gso off gro off tx off rx off sg off >/dev/null
    # shellcheck disable=SC2086
    ip netns exec "$name" tc qdisc add dev $end root tbf $queue
done
"$table"
kill -INT "$dump"
wait "$dump" || true
dump=
"$heapwright" import "$work/$table.pcap" -o "$output"
