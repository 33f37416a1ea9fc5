#!/usr/bin/env bash
# pypandoc_binary 1.17 (pandoc 3.9) and openpyxl 3.1.5.
# Expected: pandoc, which has a reader for xlsx, reads a workbook that openpyxl writes and reads again.
# Seen: "Entry not found: xl//xl/worksheets/sheet1.xml". openpyxl writes the targets of relations as absolute names of parts
# ("/xl/worksheets/sheet1.xml"), as OPC allows (ECMA-376, part 2), and pandoc takes them for relative ones.
# This fails when pandoc reads the workbook.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install pypandoc_binary==1.17 openpyxl==3.1.5
cd "$folder"
venv/bin/python - <<'PYTHON'
import subprocess

import openpyxl
import pypandoc

book = openpyxl.Workbook()
book.active.append(["name", "year"])
book.active.append(["Ada", 1815])
book.save("a.xlsx")
again = openpyxl.load_workbook("a.xlsx")
assert [cell.value for cell in again.active[2]] == ["Ada", 1815]
found = subprocess.run([pypandoc.get_pandoc_path(), "-f", "xlsx", "-t", "plain", "a.xlsx"], capture_output=True, text=True)
print(found.returncode, found.stdout, found.stderr)
assert found.returncode != 0 and "xl//xl/worksheets/sheet1.xml" in found.stderr
PYTHON
echo "as seen"
