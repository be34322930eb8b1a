#!/usr/bin/env bash
# Runs the programs against a server in memory, and checks each flaw of the pattern.
. "$(dirname "$0")/../serve.sh"

# boto3 from before August 2023 lacks ActionAfterCompletion; sdk/ adds it.
export AWS_DATA_PATH=$PWD/sdk PYTHONDONTWRITEBYTECODE=1
python=${PYTHON:-/usr/bin/python3}
"$python" check.py "$@"
