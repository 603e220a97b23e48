#!/bin/sh
# Records lighttpd_server.parquet: an HTTP server under concurrent visitors over loopback.
# Needs: apt-get install lighttpd lighttpd-mod-deflate python3; heapwright on the PATH. Run as root or as any user.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
output=${1:-$here/lighttpd_server.parquet}
heapwright=${HEAPWRIGHT:-heapwright}
port=18080
work=$(mktemp -d)

# The recorder is the server's parent and ends with it; the server's own process id is in its pid file.
finish() {
    if [ -s "$work/pid" ]; then kill -INT "$(cat "$work/pid")" 2>/dev/null || true; fi
    wait
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

python3 "$here/http_load.py" --root "$work/site" --make
mkdir "$work/cache"
cat >"$work/lighttpd.conf" <<CONF
server.bind = "127.0.0.1"
server.port = $port
server.document-root = "$work/site"
server.pid-file = "$work/pid"
server.modules = ("mod_access", "mod_dirlisting", "mod_deflate", "mod_accesslog", "mod_setenv")
server.max-keep-alive-idle = 2
dir-listing.activate = "enable"
deflate.mimetypes = ("text/")
deflate.allowed-encodings = ("gzip")
mimetype.assign = (".txt" => "text/plain", "" => "application/octet-stream")
accesslog.filename = "$work/access.log"
setenv.add-response-header = ("X-Frame-Options" => "DENY", "Cache-Control" => "max-age=60")
CONF

"$heapwright" record -o "$output" -- lighttpd -D -f "$work/lighttpd.conf" &
for _ in $(seq 100); do
    if [ -s "$work/pid" ]; then break; fi
    sleep 0.1
done
python3 "$here/http_load.py" --root "$work/site" --port $port
