#!/usr/bin/env bash
# snowballstemmer 3.1.1 beside PyStemmer 2.2.0.3.
# Expected: the stems of snowballstemmer are those of its own release, whatever else is installed.
# Seen: snowballstemmer.stemmer() returns PyStemmer's stemmer where PyStemmer can be imported, and the stems are those of PyStemmer's
# older Snowball: "evening" becomes "even", "straten" (Dutch) "strat", "aepfel" (German) "aepfel". Its own classes give "evening",
# "straat" and "apfel". So an index of stems that was made on one machine misses words on another with the same snowballstemmer.
# This fails when both give the same stems.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" -q install snowballstemmer==3.1.1 PyStemmer==2.2.0.3
cd "$folder"
venv/bin/python - <<'PYTHON'
import snowballstemmer
from snowballstemmer.dutch_stemmer import DutchStemmer
from snowballstemmer.english_stemmer import EnglishStemmer
from snowballstemmer.german_stemmer import GermanStemmer

for language, own, word, by_pystemmer, by_itself in (
    ("english", EnglishStemmer, "evening", "even", "evening"),
    ("dutch", DutchStemmer, "straten", "strat", "straat"),
    ("german", GermanStemmer, "aepfel", "aepfel", "apfel"),
):
    found = snowballstemmer.stemmer(language)
    print(language, type(found).__module__, found.stemWord(word), own().stemWord(word))
    assert type(found).__module__ == "Stemmer"
    assert (found.stemWord(word), own().stemWord(word)) == (by_pystemmer, by_itself)
PYTHON
echo "as seen"
