#!/usr/bin/env bash
# PyStemmer 3.0.0.
# Expected: Stemmer.version() tells the release whose stems come out, so that an index can record it.
# Seen: it says "2.0.1", and so does PyStemmer 2.2.0.3, whose Dutch stems differ ("straten": "strat" there, "straat" here). 3.1.0 says "3.1.0".
# The version of the installed distribution is right.
# This fails when version() agrees with the distribution.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install PyStemmer==3.0.0
cd "$folder"
venv/bin/python - <<'PYTHON'
from importlib.metadata import version

import Stemmer

print(Stemmer.version(), version("PyStemmer"), Stemmer.Stemmer("dutch").stemWord("straten"))
assert version("PyStemmer") == "3.0.0"
assert Stemmer.version() == "2.0.1"
assert Stemmer.Stemmer("dutch").stemWord("straten") == "straat"
PYTHON
echo "as seen"
