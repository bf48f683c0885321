#!/bin/sh
# 'Have I seen this page?': a service is started, gets the example corpus, is killed, and still knows.
#
#   cargo build --release && examples/serve.sh
#
# Needs curl and python3 (to make JSON of JSON lines). NEARSIFT names the program, PORT the port.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
nearsift=${NEARSIFT:-$here/../target/release/nearsift}
port=${PORT:-7717}
url=http://127.0.0.1:$port
folder=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$folder"' EXIT

start() {
    "$nearsift" serve "$folder/data" --listen "127.0.0.1:$port" 2>>"$folder/log" &
    pid=$!
    tries=0
    until curl -fs "$url/readyz" >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ "$tries" -gt 100 ] || ! kill -0 "$pid" 2>/dev/null; then
            cat "$folder/log" >&2
            exit 1
        fi
        sleep 0.1
    done
}

post() { # PATH, JSON on standard input
    curl -sS -H 'Content-Type: application/json' --data-binary @- "$url$1"
    echo
}

echo '== 1. start: the folder and its collection "default" are made'
start
curl -sS "$url/v1/stats"; echo

echo '== 2. store the example corpus: one outcome for each document, and all are durable'
python3 -c '
import json, sys
documents = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
print(json.dumps({"documents": [{"id": d["id"], "text": d["text"], "source": d["source"]} for d in documents]}))
' "$here/corpus.jsonl" | post /v1/documents | python3 -c '
import json, sys
answer = json.load(sys.stdin)
print({"stored": answer["stored"], "not_stored": answer["not_stored"]})
for outcome in answer["outcomes"]:
    if outcome["outcome"] != "added":
        print(outcome)
'

echo '== 3. check a page: has it been seen?'
python3 -c '
import json, sys
first = max((json.loads(line)["text"] for line in open(sys.argv[1], encoding="utf-8")), key=len)
print(json.dumps({"text": first[:len(first) * 9 // 10], "limit": 3}))
' "$here/corpus.jsonl" > "$folder/page.json"
post /v1/check < "$folder/page.json"
echo '   and one that was never seen:'
echo '{"text": "昨夜一场大雪过后，山谷里的茶农们早早起来清扫茶园小径，盼着春天第一批嫩芽。"}' | post /v1/check

echo '== 4. check and store at once: the second of two equal pages is a duplicate'
for id in http://a.example/1 http://b.example/2; do
    printf '{"id": "%s", "insert": true, "text": "港口管理局昨天宣布，新的货运码头将在明年三月投入使用，年吞吐量预计增加两成。"}' "$id" | post /v1/check
done

echo '== 5. kill -9, start again'
kill -9 "$pid"
wait "$pid" 2>/dev/null || true
start

echo '== 6. it still knows'
post /v1/check < "$folder/page.json"
curl -sS "$url/v1/documents/http:%2F%2Fa.example%2F1"; echo
kill "$pid"
wait "$pid"
pid=
echo '== done: stopped by SIGTERM, everything closed'
