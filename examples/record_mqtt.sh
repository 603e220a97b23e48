#!/bin/sh
# Records mosquitto_broker.parquet: an MQTT broker while dozens of clients come and go over loopback.
# Needs: apt-get install mosquitto mosquitto-clients; heapwright and its Python on the PATH. Run as root or as any user.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
output=${1:-$here/mosquitto_broker.parquet}
heapwright=${HEAPWRIGHT:-heapwright}
python=${PYTHON:-python3}
port=18830
work=$(mktemp -d)

# The recorder is the broker's parent and ends with it; the broker's own process id is in its pid file.
stop() {
    if [ -s "$work/pid" ]; then kill -TERM "$(cat "$work/pid")" 2>/dev/null || true; fi
    wait
}
finish() {
    stop
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

cat >"$work/mosquitto.conf" <<CONF
listener $port 127.0.0.1
allow_anonymous true
persistence false
max_queued_messages 20
sys_interval 0
log_dest none
user $(id -un)
pid_file $work/pid
CONF

"$heapwright" record -o "$work/whole.parquet" -- mosquitto -c "$work/mosquitto.conf" &
# One client first: for it the broker has OpenSSL fill its tables, even without encryption. They stay until the end.
for _ in $(seq 100); do
    if mosquitto_pub -h 127.0.0.1 -p $port -t start -n 2>/dev/null; then break; fi
    sleep 0.1
done
# cut_start.py finds the end of the start by this pause.
sleep 2
"$python" "$here/mqtt_load.py" --port $port
stop
"$python" "$here/cut_start.py" "$work/whole.parquet" "$output"
