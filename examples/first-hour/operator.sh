#!/usr/bin/env bash
# A first hour as an operator: a server whose data stays, a look at its deadlines, guard beside a table of another endpoint, a backup and its restore.
#
# Needs mayfly on PATH and curl. Run it in an empty directory.
set -euo pipefail

export AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1
unset AWS_ENDPOINT_URL MAYFLY_ENDPOINT
servers=()
trap '[ ${#servers[@]} = 0 ] || kill "${servers[@]}" 2>/dev/null; wait' EXIT

# serve NAME FLAGS... starts a server on a free port, and sets url.
serve() {
	local ready=$1.ready
	mayfly serve --port 0 --ready-file "$ready" "${@:2}" >"$1.out" 2>&1 &
	servers+=($!)
	until [ -s "$ready" ]; do sleep 0.05; done
	url=$(grep -oE 'http://[0-9.:]+' "$ready")
}
# db OPERATION JSON calls the API of DynamoDB at url.
db() {
	curl -sf "$url" -H "X-Amz-Target: DynamoDB_20120810.$1" -H 'Content-Type: application/x-amz-json-1.0' \
		-H 'Authorization: AWS4-HMAC-SHA256 Credential=any/20300101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0' -d "$2"
}
# says TEXT COMMAND... runs a command whose output must have the text.
says() {
	local out
	out=$("${@:2}" 2>&1) || { printf '%s\n%s\n' "failed: ${*:2}" "$out"; exit 1; }
	grep -qF -- "$1" <<<"$out" || { printf '%s\n%s\n' "no '$1' in the output of: ${*:2}" "$out"; exit 1; }
	echo "ok ${*:2}"
}

# 1. A server with its data in a directory. A table whose items expire, with one mistake: milliseconds in place of seconds.
serve first --data ./data
db CreateTable '{"TableName":"carts","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],
	"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}' >/dev/null
db UpdateTimeToLive '{"TableName":"carts","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"expires"}}' >/dev/null
tomorrow=$(($(date +%s) + 86400))
for i in $(seq 20); do db PutItem '{"TableName":"carts","Item":{"id":{"S":"c-'"$i"'"},"expires":{"N":"'$tomorrow'"}}}' >/dev/null; done
db PutItem '{"TableName":"carts","Item":{"id":{"S":"c-late"},"expires":{"N":"'${tomorrow}'000"}}}' >/dev/null
export MAYFLY_ENDPOINT=$url
says ready mayfly healthcheck --url "$url"
says milliseconds mayfly doctor --table carts --all
says milliseconds mayfly explain --table carts --key c-late
says 'expires' mayfly explain --table carts --key c-1
grep -q milliseconds first.out || { echo 'the server did not warn of the milliseconds'; exit 1; }

# 2. A backup while the server runs, a kill -9, and a restore into a new directory.
says '' mayfly backup --to ./backups
kill -9 "${servers[0]}"
wait "${servers[0]}" 2>/dev/null || true
servers=()
says '' mayfly check ./data
says '' mayfly restore --from ./backups --to ./restored
serve second --data ./restored
export MAYFLY_ENDPOINT=$url
says '"Count":21' db Scan '{"TableName":"carts","Select":"COUNT"}'

# 3. guard beside a table of an endpoint that expires late, as Amazon does.
serve amazon --memory --expiry aws --expiry-delay uniform:1h-2d
export MAYFLY_ENDPOINT=$url
db CreateTable '{"TableName":"holds","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],
	"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}}' >/dev/null
db UpdateTimeToLive '{"TableName":"holds","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"until"}}' >/dev/null
mayfly guard run --table holds --attribute until >guard.out 2>&1 &
servers+=($!)
sleep 1
soon=$(($(date +%s) + 3))
for i in $(seq 10); do db PutItem '{"TableName":"holds","Item":{"id":{"S":"h-'"$i"'"},"until":{"N":"'$soon'"}}}' >/dev/null; done
for _ in $(seq 100); do
	count=$(db Scan '{"TableName":"holds","Select":"COUNT"}')
	grep -q '"Count":0' <<<"$count" && break
	sleep 0.1
done
grep -q '"Count":0' <<<"$count" || { echo "guard left $count"; cat guard.out; exit 1; }
echo 'ok guard removed all holds at their deadlines'
says holds mayfly guard status --table holds
echo done
