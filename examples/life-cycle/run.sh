#!/usr/bin/env bash
# Runs the programs against a server in memory, and checks each flaw of the pattern. Run `npm install --prefix examples` first.
. "$(dirname "$0")/../serve.sh"

node check.mjs "$@"
