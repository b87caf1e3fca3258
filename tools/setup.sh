#!/usr/bin/env bash
# Makes the environment .venv/: the locked dependencies, checked by hash, then the project itself, editable.
# Needs Python 3.11 or newer and nothing else; no root.  `make setup` calls it once per change of the lock.
set -euo pipefail
cd "$(dirname "$0")/.."

find_python() {  # the first interpreter that is new enough; 3.11 first, the version everything was tried with
    local candidate
    for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3.14 python3}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "setup: expected Python 3.11 or newer (tried: ${PYTHON:-python3.11 ... python3}), found none." >&2
    echo "       Install one and run again, or name it: make setup PYTHON=/path/to/python3" >&2
    return 1
}

make_venv() {
    local python
    python=$(find_python)
    echo "setup: .venv with $("$python" --version)"
    "$python" -m venv "$@" .venv && return
    echo "setup: $python cannot make a virtual environment (on Debian: apt-get install python3-venv)." >&2
    return 1
}

if ! .venv/bin/python -c '' 2>/dev/null; then
    make_venv --clear                  # none yet, or its interpreter has gone
elif ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    make_venv                          # an interrupted set-up, or made without pip: add what is missing
fi

# uv installs in seconds what takes pip most of a minute; where it cannot be had, pip reads the same lock.
if .venv/bin/uv --version >/dev/null 2>&1 || .venv/bin/python -m pip install --quiet --disable-pip-version-check uv; then
    # bytecode now, or every rank of the first run compiles what it imports
    install=(.venv/bin/uv pip install --quiet --compile-bytecode --python .venv/bin/python)
else
    echo "setup: no uv, falling back to pip"
    install=(.venv/bin/python -m pip install --quiet --disable-pip-version-check)
fi
"${install[@]}" --require-hashes --requirement requirements.lock
# The build backend is in the lock too, hence no isolation: nothing but uv itself comes from outside of the lock.
"${install[@]}" --no-deps --no-build-isolation --editable .
