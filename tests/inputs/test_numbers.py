"""Numbers of JSON: an answer or an id is a text, the one that the file has."""

from __future__ import annotations

import json
import pickle

import pytest

from realmctl.inputs import rows


@pytest.mark.parametrize("written", ["2.50", "1.10", "1e5", "-0.0", "1E+2", "0.1234567890123456789"])
def test_a_number_keeps_its_text_and_its_value(tmp_path, written):
    """As an id 1.10 is not 1.1, and as an answer 2.50 is not 2.5."""
    for name, text, read in (
        ("lines.jsonl", f'{{"n": {written}}}\n', rows.json_lines),
        ("list.json", f'[{{"n": {written}}}]', rows.json_list),
    ):
        (tmp_path / name).write_text(text)
        [row] = read(tmp_path / name)
        found = pickle.loads(pickle.dumps(row.fields["n"]))  # as a worker gets it
        assert found == float(written) and str(found) == f"{found}" == written
        assert json.loads(json.dumps(found)) == float(written)
