#!/bin/sh
# Records mosquitto_broker.parquet: an MQTT broker while dozens of clients come and go over loopback.
# Needs: apt-get install mosquitto mosquitto-clients python3; heapwright on the PATH. Run as root or as any user.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
output=${1:-$here/mosquitto_broker.parquet}
heapwright=${HEAPWRIGHT:-heapwright}
port=18830
work=$(mktemp -d)

# The recorder is the broker's parent; the broker's own process id is in its pid file.
finish() {
    if [ -s "$work/pid" ]; then kill -TERM "$(cat "$work/pid")" 2>/dev/null || true; fi
    wait
    rm -rf "$work"
}
trap finish EXIT INT TERM

cat >"$work/mosquitto.conf" <<CONF
listener $port 127.0.0.1
allow_anonymous true
persistence false
max_queued_messages 20
log_dest none
sys_interval 0
user $(id -un)
pid_file $work/pid
CONF

"$heapwright" record -o "$output" -- mosquitto -c "$work/mosquitto.conf" &
for _ in $(seq 100); do
    if [ -s "$work/pid" ] && mosquitto_pub -h 127.0.0.1 -p $port -t start -n 2>/dev/null; then break; fi
    sleep 0.1
done
sleep 0.1
