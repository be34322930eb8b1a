#!/usr/bin/env bash
# Runs the published sweeper and mayfly guard on the same data, and checks each flaw of the pattern. The server removes expired items late, as Amazon does, so the
# sweeper or guard has removed each missing item. Run `npm install --prefix examples` first.
SERVE='--expiry aws --expiry-delay fixed:8784h'
. "$(dirname "$0")/../serve.sh"

export PYTHONDONTWRITEBYTECODE=1 PYTHON=${PYTHON:-/usr/bin/python3}
node check.mjs "$@"
