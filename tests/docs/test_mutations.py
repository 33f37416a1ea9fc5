"""The table of mutations fits the code, and the page is what was found."""

from __future__ import annotations

import json
from pathlib import Path

from docs.make_mutations import PAGE, RESULTS, page
from tests.mutations.table import KINDS, PLACES, misfits

ROOT = Path(__file__).parents[2]


def test_every_mutation_stands_once_in_its_file_and_names_tests_that_there_are():
    assert not misfits(ROOT)
    mutations = [mutation for place in PLACES for mutation in place.mutations]
    assert len(mutations) >= 60 and {mutation.kind for mutation in mutations} == set(KINDS)
    assert all(mutation.text != mutation.becomes for mutation in mutations)


def test_the_page_is_what_was_found_for_the_table():
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert {(place.file, each.what) for place in PLACES for each in place.mutations} == {
        (file, what) for file, tried in found.items() for what in tried
    }
    assert PAGE.read_text(encoding="utf-8") == page(found)
    unforeseen = [
        each.what
        for place in PLACES
        for each in place.mutations
        if bool(each.survives) == bool(found[place.file][each.what])
    ]
    assert not unforeseen
