#!/usr/bin/env bash
# babel 2.19.0.
# Expected: parse_date(format_date(d, "long", l), l, format="long") is d in every language, since babel has the names of its months.
# Seen: IndexError in 15 of 18 languages: names of months are not read, numbers alone are. It works where the month is a number (ja, zh,
# ko, vi).
# This fails when English or one of these languages can be read.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install babel==2.19.0
cd "$folder"
venv/bin/python - <<'PYTHON'
import datetime

from babel.dates import format_date, parse_date

day, failed = datetime.date(1998, 12, 3), []
for language in "en it pt nl pl sv cs uk tr vi de fr es fi hu ru ja ko zh".split():
    text = format_date(day, "long", locale=language)
    try:
        assert parse_date(text, locale=language, format="long") == day, (text, language)
    except IndexError:
        failed.append(language)
print(failed)
assert failed == "en it pt nl pl sv cs uk tr de fr es fi hu ru".split()
PYTHON
echo "as seen"
