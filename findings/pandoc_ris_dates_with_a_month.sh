#!/usr/bin/env bash
# pypandoc_binary 1.17 (pandoc 3.9).
# Expected: PY and DA of RIS are "YYYY/MM/DD/other info", of which month, day and the rest may be left out, and the year of each entry is kept.
# Seen: of "PY  - 2020/03" and "PY  - 2020/03/04/" no part of the date is left, not even the year; "PY  - 2020" gives 2020, and "PY  - 2020///" gives
# 2020 and three more dates, all 0. DA is not read.
# This fails when pandoc keeps the year of a date with a month.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install pypandoc_binary==1.17
"$folder/venv/bin/python" - <<'PYTHON'
import json
import subprocess

import pypandoc


def issued(line: str) -> list:
    entry = f"TY  - JOUR\nTI  - On grain\n{line}\nER  - \n"
    made = subprocess.run([pypandoc.get_pandoc_path(), "-f", "ris", "-t", "csljson"], input=entry, capture_output=True, text=True, check=True)
    return json.loads(made.stdout)[0].get("issued", {}).get("date-parts")


found = {line: issued(f"{line}") for line in ("PY  - 2020", "PY  - 2020/03", "PY  - 2020/03/04/", "PY  - 2020///", "DA  - 2020/03/04")}
print(found)
assert found == {
    "PY  - 2020": [[2020]],
    "PY  - 2020/03": [],
    "PY  - 2020/03/04/": [],
    "PY  - 2020///": [[2020], [0], [0], [0]],
    "DA  - 2020/03/04": None,
}
PYTHON
echo "as seen"
