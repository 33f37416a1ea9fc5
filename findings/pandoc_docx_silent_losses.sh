#!/usr/bin/env bash
# pypandoc_binary 1.17 (pandoc 3.9) and python-docx 1.2.0.
# Expected: every word of a Word document that Word shows comes out, or a warning says that one does not.
# Seen: pandoc exits with 0, without a warning (also with --fail-if-warnings), and without (a) the result of a simple field
# (w:fldSimple, which Word writes for merge fields), and (b) the cells of a row beyond the columns of w:tblGrid.
# This fails when one of these words comes out.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install pypandoc_binary==1.17 python-docx==1.2.0
cd "$folder"
venv/bin/python - <<'PYTHON'
import subprocess

import docx
import pypandoc
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls

made = docx.Document()
first = made.add_paragraph("Dear ")
first._p.append(parse_xml(f'<w:fldSimple {nsdecls("w")} w:instr=" MERGEFIELD name "><w:r><w:t>Ada</w:t></w:r></w:fldSimple>'))
table = made.add_table(1, 2)
table.cell(0, 0).text, table.cell(0, 1).text = "Kept", "Cut"
table._tbl.tblGrid.remove(table._tbl.tblGrid.gridCol_lst[1])
made.save("a.docx")
found = subprocess.run(
    [pypandoc.get_pandoc_path(), "--fail-if-warnings", "-t", "plain", "a.docx"], capture_output=True, text=True
)
print(found.returncode, found.stdout, found.stderr)
assert found.returncode == 0 and "Dear" in found.stdout and "Kept" in found.stdout
assert not {"Ada", "Cut"} & {*found.stdout.split()}
PYTHON
echo "as seen"
