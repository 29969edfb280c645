#!/bin/sh
# Makes .venv from locks/dev.txt. Safe to repeat; says what is missing and how to get it.
set -eu
cd "$(dirname "$0")/.."
say() { printf '%s\n' "$*" >&2; }
python=
for candidate in python3.13 python3.12 python3.11 python3; do
    if command -v "$candidate" >/dev/null 2>&1 &&
        "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    say "setup: no Python 3.11 or newer was found. Install one (Debian: apt-get install python3 python3-venv) and run again."
    exit 1
fi
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    say "setup: $python cannot make virtual environments. Install them (Debian: apt-get install python3-venv) and run again."
    exit 1
fi
say "setup: .venv with $("$python" --version)"
[ -x .venv/bin/python ] || "$python" -m venv .venv
uv_pin=$(grep -oE '^uv==[0-9.]+' locks/dev.txt)
.venv/bin/uv --version >/dev/null 2>&1 || .venv/bin/python -m pip install -q "$uv_pin"
.venv/bin/uv pip sync -q --python .venv/bin/python --require-hashes locks/dev.txt
.venv/bin/uv pip install -q --python .venv/bin/python --no-deps -e .
touch .venv/.ready
