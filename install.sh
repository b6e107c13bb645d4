#!/bin/sh
# Installs hookcheck, and the extras that are named, into the Python at hand: `sh install.sh [test,lint]`.
# A torch that is already installed is the one under test, so it is never replaced.
set -eu
cd "$(dirname "$0")"
if ! python -c "import torch" 2>/dev/null; then
    python -m pip install "torch==2.13.0"
fi
python -m pip install -e ".${1:+[$1]}"
