#!/usr/bin/env bash
# pypdfium2 5.15.2 (PDFium) and reportlab 5.1.0.
# Expected: a hyphen at the end of a printed line is "-" in the text, or the divided word comes out whole.
# Seen: it is U+FFFE from get_text_range() and U+0002 from get_text_bounded(), the end of the line is gone, and a word's own hyphen is treated alike:
# "state-of-the-" + "art" is "state-of-the\\ufffeart". Who removes both signs gets "theart"; who keeps them finds neither word.
# This fails when one of the two gives a hyphen.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install pypdfium2==5.15.2 reportlab==5.1.0
cd "$folder"
venv/bin/python - <<'PYTHON'
import pypdfium2
from reportlab.pdfgen import canvas

page = canvas.Canvas("a.pdf")
for height, line in enumerate(("The inter-", "national port, a state-of-the-", "art tool")):
    page.drawString(72, 700 - 14 * height, line)
page.save()
text = pypdfium2.PdfDocument("a.pdf")[0].get_textpage()
whole, bounded = text.get_text_range(), text.get_text_bounded()
print(repr(whole), repr(bounded))
assert "inter\ufffenational" in whole and "state-of-the\ufffeart" in whole
assert "inter\x02national" in bounded and "state-of-the\x02art" in bounded
PYTHON
echo "as seen"
