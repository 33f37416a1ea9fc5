"""Scoring files: what ORQA's evaluator counts, and what it would choke on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realmctl.errors import ConfigError, InputError
from realmctl.extras.score.predictions import score, scores_text
from tests.questions.published_scorers import right

REFERENCES = [
    {"question": "who", "answer": ["Ada Lovelace", "Ada"]},
    {"question": "where", "answer": ["Caf\u00e9"]},
    {"question": "when", "answer": ["1843"]},
    {"question": "why", "answer": ["fun"]},
]
PREDICTIONS = [
    {"question": "who", "prediction": "the Ada", "score": 1.5},
    {"question": "where", "prediction": "Cafe\u0301"},
    {"question": "when", "prediction": "1844"},
]


@pytest.fixture
def write(tmp_path):
    def write(name: str, records: list) -> Path:
        path = tmp_path / name
        path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
        return path

    return write


def test_scores(write):
    scores, verdicts = score(write("p", PREDICTIONS), write("r", REFERENCES))
    assert scores == {
        "questions": 4,
        "missing": 1,
        "repeated": 0,
        "several": 0,
        "unknown": 0,
        "em": 0.5,
        "scorer": "orqa",
        "f1": 0.5,
        "em_orqa": 0.5,
        "em_squad": 0.25,
        "em_dpr": 0.25,
        "right_orqa": 2,
        "right_squad": 1,
        "right_dpr": 1,
    }
    assert [each.question.question for each in verdicts] == ["who", "where", "when", "why"]
    assert [each.prediction for each in verdicts] == ["the Ada", "Cafe\u0301", "1844", None]
    assert [each.record() for each in verdicts if each.disagrees] == [
        {
            "question": "where",
            "prediction": "Cafe\u0301",
            "answers": ["Caf\u00e9"],
            "verdicts": {"orqa": "match", "squad": "no match", "dpr": "no match"},
        }
    ]


def test_the_last_of_repeated_questions_and_predictions_counts(write):
    references = [*REFERENCES, {"question": "why", "answer": ["money"]}, {"question": "who", "answer": ["Babbage"]}]
    predictions = [
        *PREDICTIONS,
        {"question": "why", "prediction": "fun"},
        {"question": "why", "prediction": "money"},
        {"question": "what", "prediction": "an engine"},
    ]
    scores, verdicts = score(write("p", predictions), write("r", references))
    assert (scores["questions"], scores["missing"], scores["repeated"], scores["unknown"]) == (4, 0, 2, 1)
    assert [each.verdicts["orqa"] == "match" for each in verdicts] == [False, True, False, True]


TWICE = {
    "data": [
        {"paragraphs": [{"context": "-", "qas": [{"id": f"a{n}", "question": "When?", "answers": [{"text": str(n)}]}]}]}
        for n in range(3)
    ]
}
BY_ID = {
    "squad": json.dumps({"a0": "0", "a1": "1", "a2": "0", "b": "1"}),
    "squad in lines": json.dumps({"a0": "0", "a1": 1, "a2": "0", "b": "1"}, indent=1),
    "lines": "".join(
        json.dumps({"id": name, "question": "When?" if name != "b" else "Who?", "prediction": said}) + "\n"
        for name, said in [("a0", "0"), ("a1", "1"), ("a2", "0"), ("b", "1")]
    ),
}


@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("predictions", BY_ID.values(), ids=BY_ID)
def test_ids_tell_questions_with_one_text_apart(write, predictions, bom):
    scores, verdicts = score(write("p", [bom + predictions]), write("r", [json.dumps(TWICE)]), scorer="squad")
    assert (scores["questions"], scores["missing"], scores["repeated"], scores["unknown"]) == (3, 0, 0, 1)
    assert [each.prediction for each in verdicts] == ["0", "1", "0"] and scores["right_squad"] == 2


def test_predictions_with_the_ids_of_another_file_are_found_by_their_text(write):
    """Questions without ids are numbered, and here the file of references begins with another one."""
    predictions = [{**record, "id": str(number)} for number, record in enumerate(PREDICTIONS, 1)]
    references = [REFERENCES[-1], *REFERENCES[:-1]]
    found, expected = (score(write("p", each), write("r", references))[0] for each in (predictions, PREDICTIONS))
    assert found == expected


def test_squads_predictions_are_scored_as_by_its_script(shared_data, write):
    """KorQuAD asks some questions of two paragraphs. Each second question gets one of its answers."""
    path = shared_data / "ko_korquad" / "KorQuAD_v1.0_dev.json"
    asked = [
        question
        for article in json.loads(path.read_text())["data"]
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]
    said = {question["id"]: question["answers"][0]["text"] for question in asked[::2]}
    scores, _ = score(write("p", [json.dumps(said)]), path, scorer="korquad")
    assert scores["questions"] == len(asked) == 5774
    assert scores["right_korquad"] == len(said) == scores["questions"] - scores["missing"]


texts = st.sampled_from(["", "a", "the Ada", "Ada", "ada!", "1,843", "1843", "e\u0301", "\u00e9", "(", "A.a", "[x"])
names = st.sampled_from(["q1", "q2", "q3", "q4"])


@given(
    st.lists(st.tuples(names, st.lists(texts, min_size=1, max_size=3)), min_size=1, max_size=6),
    st.lists(st.tuples(names, texts), max_size=6),
    st.booleans(),
)
def test_as_orqas_evaluator_counts(tmp_path_factory, references, predictions, is_regex):
    folder = tmp_path_factory.mktemp("score")
    (folder / "r").write_text("".join(json.dumps({"question": q, "answer": a}) + "\n" for q, a in references))
    (folder / "p").write_text("".join(json.dumps({"question": q, "prediction": p}) + "\n" for q, p in predictions))
    scores, _ = score(folder / "p", folder / "r", is_regex=is_regex)
    asked, said = dict(references), dict(predictions)
    assert (scores["questions"], scores["missing"]) == (len(asked), len(asked.keys() - said.keys()))
    for name in ("regex-match", "regex-search") if is_regex else ("orqa", "squad", "dpr"):
        count = sum(right(name, said[q], asked[q]) for q in asked if q in said)
        assert scores[f"right_{name}"] == count and scores[f"em_{name}"] == pytest.approx(count / len(asked), abs=1e-6)


def test_a_question_without_prediction_is_wrong_whatever_its_answers(write):
    scores, verdicts = score(write("p", []), write("r", [{"question": "q", "answer": ["the", ""]}]))
    assert (scores["em"], scores["missing"]) == (0, 1) and not verdicts[0].disagrees


def test_blank_answers_are_references_too(write):
    scores, _ = score(
        write("p", [{"question": "q", "prediction": "a"}]), write("r", [{"question": "q", "answer": [""]}])
    )
    assert scores["em"] == 1  # by the published rule; read_questions would have dropped the question


def test_regular_expressions(write):
    references = [
        {"question": "who", "answer": ["Lincoln"]},
        {"question": "what", "answer": ["("]},
        {"question": "why", "answer": ["(a|aa)+$"]},
    ]
    predictions = [
        {"question": "who", "prediction": "Abraham Lincoln"},
        {"question": "what", "prediction": "x"},
        {"question": "why", "prediction": "a" * 3000 + "!"},
    ]
    paths = write("p", predictions), write("r", references)
    scores, verdicts = score(*paths, is_regex=True)
    assert (scores["scorer"], scores["em"]) == ("regex-match", 0)
    assert scores["right_regex-search"] == 1 and "em_orqa" not in scores
    assert [scores[f"regex-{how}_{why}"] for how in ("match", "search") for why in ("invalid", "timeout")] == [1] * 4
    assert [each.question.question for each in verdicts if each.disagrees] == ["who"]
    assert "1 answers could not be run by regex-match: timeout" in scores_text(scores)
    with pytest.raises(ConfigError, match="--scorer orqa"):
        score(*paths, is_regex=True, scorer="orqa")


BAD_PREDICTIONS = [
    ("not json", "p:2: "),
    ("[1]", "p:2: "),
    ('{"question": "who"}', "p:2: .*prediction"),
    ('{"question": "who", "prediction": ["Ada"]}', "p:2: .*prediction"),
    ("[" * 100_000, "p:2: "),
]
NO_PREDICTIONS = [
    '{"id": "7", "title": "T", "text": "A document."}',
    '{"a": ["x"]}',
    '{"a": "x"}\n{"b": "y"}',
    '{"a": "x"',
]


@pytest.mark.parametrize("text", NO_PREDICTIONS)
def test_what_is_neither_form_of_predictions_is_refused(write, text):
    with pytest.raises(InputError, match="id of a question"):
        score(write("p", [text]), write("r", REFERENCES))


@pytest.mark.parametrize(("line", "message"), BAD_PREDICTIONS)
def test_bad_predictions_are_named_by_line(write, line, message):
    with pytest.raises(InputError, match=message):
        score(write("p", [PREDICTIONS[0], line]), write("r", REFERENCES))


BAD_REFERENCES = [
    ('{"question": "q", "answer": []}', "r:5: "),
    ('{"question": "q"}', "r:5: "),
    ("{", "r:5: "),
]


@pytest.mark.parametrize(("line", "message"), BAD_REFERENCES)
def test_bad_references_are_named_by_line(write, line, message):
    with pytest.raises(InputError, match=message):
        score(write("p", PREDICTIONS), write("r", [*REFERENCES, line]))


def test_missing_and_empty_files(write, tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        score(tmp_path / "none", write("r", REFERENCES))
    with pytest.raises(InputError, match="empty"):
        score(write("p", PREDICTIONS), write("r", []))
    with pytest.raises(InputError, match="holds no question"):
        score(write("p", PREDICTIONS), write("r", ["[]"]))


def test_curated_trec_scored_against_itself(shared_data, write):
    """A pattern found in the text it was written for: its own first alternative without signs of a pattern."""
    rows = [line.split("\t") for line in (shared_data / "CuratedTrec.curated-test.tsv").read_text().splitlines()]
    predictions = [{"question": row[2], "prediction": row[3].split("|")[0]} for row in rows if row[3][:20].isalpha()]
    scores, _ = score(write("p", predictions), shared_data / "CuratedTrec.curated-test.tsv")
    assert scores["right_regex-match"] == scores["questions"] - scores["missing"] > 50


@pytest.mark.parametrize(("prediction", "text"), [(1945, "1945"), (2.5, "2.5"), (-3, "-3")])
def test_a_number_is_a_prediction_as_it_is_written(write, prediction, text):
    scores, _ = score(
        write("p", [{"question": "q", "prediction": prediction}]), write("r", [{"question": "q", "answer": [text]}])
    )
    assert scores["em"] == 1.0


def test_two_different_predictions_for_one_question_are_told(write):
    """The last counts, as in ORQA's evaluator."""
    references, other = write("r", REFERENCES), {"question": "who", "prediction": "Grace"}
    scores, _ = score(write("p", [*PREDICTIONS, other]), references)
    assert scores["several"] == 1 and "1 questions have several predictions that differ" in scores_text(scores)
    scores, _ = score(write("p", [*PREDICTIONS, PREDICTIONS[0]]), references)
    assert scores["several"] == 0 and "several" not in scores_text(scores)
    ids = [{"question": "who", "id": name, "prediction": name} for name in ("Ada", "Grace")]
    assert score(write("p", ids), references)[0]["several"] == 1  # the references have no ids


def test_a_missing_value_is_no_prediction_and_no_answer(write):
    """pandas writes NaN for a missing value. As a text, the prediction would equal the answer."""
    references, predictions = write("r", [{"question": "who", "id": "a", "answer": ["Ada"]}]), write("o", [])
    for value in ("null", "NaN", "Infinity", "-Infinity"):
        for line in (
            f'{{"question": "who", "prediction": {value}}}',
            f'[{{"id": "a", "prediction_text": {value}}}]',
            f'{{"a": {value}}}',
        ):
            scores = score(write("p", [line]), references)[0]
            assert (scores["missing"], scores["em"]) == (1, 0)
        for answer in (f"[{value}]", value):
            with pytest.raises(InputError, match="r:1"):
                score(predictions, write("r", [f'{{"question": "who", "answer": {answer}}}']))
        references = write("r", [{"question": "who", "id": "a", "answer": ["Ada"]}])


def test_a_name_that_stands_twice_in_squads_object_is_told(write):
    references = write("r", [json.dumps({"id": "a", "question": "Who?", "answer": ["Ada"]})])
    twice, same = ('{"a": "Ben", "a": "Ada"}', '{"a": "Ada", "a": "Ada"}')
    scores, _ = score(write("p", [twice]), references, scorer="squad")
    assert (scores["several"], scores["right_squad"]) == (1, 1)
    assert score(write("p", [same]), references, scorer="squad")[0]["several"] == 0


SQUAD_2 = {"version": "v2.0", "data": [{"title": "Mill", "paragraphs": [{"context": "It burnt in 1911.", "qas": [
    {"id": "a", "question": "When?", "is_impossible": False, "answers": [{"text": "1911", "answer_start": 12}]},
    {"id": "b", "question": "Who?", "is_impossible": True, "answers": [], "plausible_answers": [{"text": "It", "answer_start": 0}]},
    {"id": "c", "question": "Why?", "is_impossible": True, "answers": []},
]}]}]}  # fmt: skip


def test_an_empty_prediction_is_right_where_squad_2_has_no_answer(write):
    """As SQuAD's evaluate-v2.0.py counts: exact and F1 are 1 for an empty prediction, and 0 for any other."""
    predictions = write("p", [json.dumps({"a": "in 1911", "b": "", "c": "rain"})])
    scores, _ = score(predictions, write("r", [json.dumps(SQUAD_2)]))
    assert (scores["questions"], scores["unanswerable"], scores["right_squad"]) == (3, 2, 1)
    assert scores["f1"] == pytest.approx((2 / 3 + 1 + 0) / 3, abs=1e-6)


def test_the_lists_of_hugging_faces_metrics_are_read(write):
    """As `evaluate.load("squad_v2").compute(predictions=..., references=...)` takes them."""
    predictions = [
        {"id": "a", "prediction_text": "1911", "no_answer_probability": 0.0},
        {"id": "b", "prediction_text": ""},
    ]
    references = [
        {"id": "a", "answers": {"text": ["1911", "in 1911"], "answer_start": [12, 9]}},
        {"id": "b", "answers": {"text": [], "answer_start": []}},
        {"id": "c", "answers": {"text": ["x"], "answer_start": [1]}},
    ]
    for lines in ([json.dumps(references)], [*map(json.dumps, references)]):
        scores, _ = score(write("p", [json.dumps(predictions, indent=1)]), write("r", lines))
        assert (scores["questions"], scores["missing"], scores["em"], scores["f1"]) == (
            3,
            1,
            round(2 / 3, 6),
            round(2 / 3, 6),
        )
    squad, _ = score(write("p", [*map(json.dumps, predictions)]), write("r", [json.dumps(SQUAD_2)]))
    assert (squad["right_squad"], squad["missing"]) == (2, 1)


def test_a_file_all_of_whose_questions_lack_answers_is_no_squad_2(write):
    blind = json.loads(json.dumps(SQUAD_2).replace('"is_impossible": false', '"is_impossible": true'))
    with pytest.raises(InputError, match="list of answers is empty"):
        score(write("p", [json.dumps({"a": ""})]), write("r", [json.dumps(blind)]))
