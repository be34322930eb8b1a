# Sourced by the examples' run.sh. Starts a server in memory with a movable clock on a free port, and exports its URL as AWS_ENDPOINT_URL. It ends with the script.
# MAYFLY names the program; by default, it is built from this checkout. SERVE has further flags for the server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[1]}")"

work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
if [ -z "${MAYFLY:-}" ]; then
	MAYFLY=$work/mayfly
	(cd .. && go build -o "$MAYFLY" ../cmd/mayfly)
fi
# shellcheck disable=SC2086 # flags are words
"$MAYFLY" serve --memory --port 0 ${SERVE:---start 2030-01-01T00:00:00Z} >"$work/out" 2>"$work/err" &
server=$!
AWS_ENDPOINT_URL=
for _ in $(seq 100); do
	AWS_ENDPOINT_URL=$(grep -oE 'http://127\.0\.0\.1:[0-9]+' "$work/out" | head -n 1 || true)
	[ -z "$AWS_ENDPOINT_URL" ] || break
	sleep 0.1
done
[ -n "$AWS_ENDPOINT_URL" ] || { cat "$work/err"; exit 1; }
export MAYFLY AWS_ENDPOINT_URL AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1
export SCHEDULE_ROLE_ARN=arn:aws:iam::000000000000:role/scheduler
