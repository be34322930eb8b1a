#!/usr/bin/env bash
# Runs the published sweeper and mayfly guard on the same data, and checks each flaw of the pattern. The server is slow to remove what has expired, as Amazon's is: what
# goes, goes by the sweeper's or guard's doing. `npm install --prefix examples` comes first.
SERVE='--expiry aws --expiry-delay fixed:8784h'
. "$(dirname "$0")/../serve.sh"

export PYTHONDONTWRITEBYTECODE=1 PYTHON=${PYTHON:-/usr/bin/python3}
node check.mjs "$@"
