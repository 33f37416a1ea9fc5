"""Every layout that questions circulate in, on files of a few lines and on published ones where at hand."""

import bz2
import gzip
import json

import pytest
import zstandard

from realmctl.errors import InputError
from realmctl.questions.questions import Question, read_questions

ADA = Question("1", "who wrote it", ("Ada", "Lovelace"))


@pytest.fixture
def write(tmp_path):
    """Write text to a file whose name tells nothing."""

    def write(content: str):
        path = tmp_path / "data"
        path.write_text(content, encoding="utf-8")
        return path

    return write


def squad(*questions):
    return json.dumps(
        {
            "version": "v2.0",
            "data": [{"title": "T", "paragraphs": [{"context": "C", "qas": list(questions)}]}],
        }
    )


ONE_QUESTION = {
    "NQ-open": '{"question": "who wrote it", "answer": ["Ada", "Lovelace"]}\n',
    "answers": '{"id": 1, "question": "who wrote it", "answers": ["Ada", "Lovelace"]}',
    "FlashRAG": '{"id": "1", "question": "who wrote it", "golden_answers": ["Ada", "Lovelace"], "x": {}}\n',
    "BOM and CRLF": '\ufeff{"question": "who wrote it", "answer": ["Ada", "Lovelace"]}\r\n\r\n',
    "WebQuestions, brmson": '[\n {"qId": "1", "answers": ["Ada", "Lovelace"], "qText": "who wrote it"}\n]',
    "WebQuestions, SEMPRE": json.dumps(
        [
            {
                "url": "u",
                "targetValue": '(list (description Ada) (description "Lovelace"))',
                "utterance": "who wrote it",
            }
        ]
    ),
    "WebQuestions, SEMPRE pretty": json.dumps(
        [{"targetValue": "(list (description Ada) (description Lovelace))", "utterance": "who wrote it"}],
        indent=2,
    ),
    "DPR": "who wrote it\t['Ada', 'Lovelace']\n",
    "DPR quoted": "who wrote it\t\"['Ada', 'Lovelace']\"\n",
    "SQuAD": squad(
        {
            "id": "1",
            "question": "who wrote it",
            "answers": [{"text": "Ada"}, {"text": "Lovelace"}, {"text": "Ada"}],
        }
    ),
    "SQuAD pretty": json.dumps(
        json.loads(squad({"id": "1", "question": "who wrote it", "answers": [{"text": "Ada"}, {"text": "Lovelace"}]})),
        indent=1,
    ),
    "TriviaQA": json.dumps(
        {
            "Data": [
                {
                    "QuestionId": "1",
                    "Question": "who wrote it",
                    "Answer": {"Value": "Ada", "Aliases": ["Ada", "Lovelace"], "NormalizedAliases": ["ada"]},
                }
            ],
            "Domain": "unfiltered",
        },
        indent=4,
    ),
    "AmbigQA, one reading": json.dumps(
        [
            {
                "annotations": [
                    {"type": "singleAnswer", "answer": ["Ada"]},
                    {"type": "singleAnswer", "answer": ["Lovelace", "Ada"]},
                ],
                "id": "1",
                "question": "who wrote it",
            }
        ],
        indent=1,
    ),
    "AmbigQA, several readings": json.dumps(
        [
            {
                "viewed_doc_titles": ["It"],
                "used_queries": [{"query": "it", "results": [{"title": "It", "snippet": "x"}]}],
                "annotations": [
                    {
                        "type": "multipleQAs",
                        "qaPairs": [
                            {"question": "who wrote it first", "answer": ["Ada"]},
                            {"question": "who wrote it last", "answer": ["Lovelace"]},
                        ],
                    }
                ],
                "nq_answer": ["Bob"],
                "id": "1",
                "question": "who wrote it",
            }
        ]
    ),
    "AmbigQA of the hub": json.dumps(
        {
            "id": "1",
            "question": "who wrote it",
            "annotations": {
                "type": ["singleAnswer", "multipleQAs"],
                "answer": [["Ada"], []],
                "qaPairs": [
                    {"question": [], "answer": []},
                    {"question": ["who?", "x"], "answer": [["Ada"], ["Lovelace"]]},
                ],
            },
        }
    ),
    "answer as a string": '{"question": "who wrote it", "answer": "Ada", "answers": ["Ada", "Lovelace"]}',
}


@pytest.mark.parametrize("layout", ONE_QUESTION)
def test_layouts(write, layout):
    expected = Question("1", "who wrote it", ("Ada",)) if layout == "answer as a string" else ADA
    assert read_questions(write(ONE_QUESTION[layout])) == [expected]


def test_curated_trec_table_is_regex(write):
    path = write('1669\tfactoid\t"How" tall is it?\t20\\s?,?\\s?320|\t6\n1700\tfactoid\tWho?\tAda|Lovelace\n')
    assert read_questions(path) == [
        Question("1669", '"How" tall is it?', ("20\\s?,?\\s?320|\t6",), True),
        Question("1700", "Who?", ("Ada|Lovelace",), True),
    ]


def test_is_regex_of_the_caller_wins_over_the_format(write):
    drqa = write('{"question": "Who?", "answer": ["Ada|Lovelace"]}')
    assert not read_questions(drqa)[0].is_regex
    assert read_questions(drqa, is_regex=True)[0].is_regex
    assert read_questions(write('{"question": "Who?", "answer": ["A|B"], "is_regex": true}'))[0].is_regex
    assert not read_questions(write("1\tfactoid\tWho?\tAda"), is_regex=False)[0].is_regex


def test_efficientqa_answers_by_field_name(write):
    path = write('{"question": "who", "answer": ["A"], "answer_and_def_correct_predictions": ["A", "B"]}')
    assert read_questions(path, answer_field="answer_and_def_correct_predictions")[0].answers == ("A", "B")
    with pytest.raises(InputError, match=r"data:1: .*wrong_field"):
        read_questions(path, answer_field="wrong_field")


def test_sempre_quoted_descriptions(write):
    target = r'(list (description "J. (Joe) \"Fox\" Kennedy") (description Padmé) (description 3.5))'
    assert read_questions(write(json.dumps([{"utterance": "who", "targetValue": target}])))[0].answers == (
        'J. (Joe) "Fox" Kennedy',
        "Padmé",
        "3.5",
    )


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, zstandard.ZstdCompressor().compress])
def test_compressed_files(tmp_path, compress):
    path = tmp_path / "data"
    path.write_bytes(compress(ONE_QUESTION["NQ-open"].encode()))
    assert read_questions(path) == [ADA]


def test_a_squad_file_of_one_long_line(write):
    questions = [{"id": str(i), "question": "who wrote it", "answers": [{"text": "Ada"}]} for i in range(2000)]
    assert len(read_questions(write(squad(*questions)))) == 2000


def test_impossible_and_unanswered_questions_are_dropped_and_said_so(write, capsys):
    path = write(
        squad(
            {"id": "1", "question": "q", "answers": [{"text": "Ada"}]},
            {"id": "2", "question": "q", "is_impossible": True, "answers": [{"text": "x"}]},
            {"id": "3", "question": "q", "answers": [{"text": " "}]},
        )
    )
    assert [question.id for question in read_questions(path)] == ["1"]
    assert "2 questions dropped: without an answer" in capsys.readouterr().err


def test_what_was_detected_is_said(write, capsys):
    read_questions(write(ONE_QUESTION["DPR"]))
    assert "1 questions, read as a DPR table" in capsys.readouterr().err


def test_ids_default_to_the_place_in_the_file(write):
    lines = [json.dumps({"question": "q", "answer": answer}) for answer in (["1"], [], ["3"])]
    assert [question.id for question in read_questions(write("\n".join(lines)))] == ["1", "3"]


def test_a_repeated_record_is_dropped_and_a_contradicting_id_is_refused(write, capsys):
    record = '{"id": "x", "question": "a", "answer": ["1"]}\n'
    assert len(read_questions(write(record * 2))) == 1
    assert "1 questions dropped: repeated" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"data:2: .*'x'"):
        read_questions(write(record + record.replace('"a"', '"b"')))


def test_one_question_asked_twice_under_two_ids_stays_two(write):
    record = '{"question": "a", "answer": ["1"]}\n'
    assert len(read_questions(write(record * 2))) == 2


BAD = {
    "empty": ("", "is empty"),
    "blank": ("\n \n", "is empty"),
    "prose": ("Once upon a time\nthere was", "questions cannot be read from it"),
    "three columns": ("a\tb\tc\n", "questions cannot be read from it"),
    "broken line": ('{"question": "a", "answer": ["b"]}\n{"question": \n', "data:2: not valid JSON"),
    "broken first line": (
        '{"question": "a", "answer": ["b}\n{"question": "a", "answer": ["b"]}\n',
        "data:1: ",
    ),
    "not an object": ('{"question": "a", "answer": ["b"]}\n[1]\n', "data:2: a JSON list"),
    "no question": ('{"text": "a", "answer": ["b"]}\n', "data:1: no text under any of question"),
    "empty question": ('{"question": " ", "answer": ["b"]}\n', "data:1: no text under any"),
    "no answer field": ('{"question": "a"}\n', "data:1: nothing as answers"),
    "answers of the wrong kind": ('{"question": "a", "answer": [true]}\n', r"data:1: \[True\]"),
    "all unanswered": ('{"question": "a", "answer": []}\n', "data"),
    "no list literal": ("q\t['a']\nq\t__import__('os')\n", "data:2: "),
    "literal of the wrong kind": ("q\t{'a': 1}\n", "data:1: "),
    "columns missing": ("1\tfactoid\tq\tregex\n1\tq\n", "data:2: 2 "),
    "tab missing": ("q\t['a']\nq\n", "data:2: 1 "),
    "a number too long": (
        '{"question": "a", "answer": ["b"], "n": ' + "9" * 5000 + "}",
        "data:1: ",
    ),
    "a list too long for csv": ("q\t['" + "a" * 200_000 + "']", "data:1: "),
    "half a surrogate": ('{"question": "a", "answer": ["\\ud800"]}', "data:1: "),
    "cut JSON": ('[{"question": "a"', "data: "),
    "record of a list": ('[{"question": "a", "answer": ["b"]}, 3]', "data, record 2: "),
    "half a SQuAD": ('{"data": [{"title": "T"}]}', "SQuAD"),
    "SQuAD without ids": (squad({"question": "q", "answers": []}), "data, record 1: .*SQuAD"),
    "TriviaQA without answers": (
        '{"Data": [{"Question": "q", "QuestionId": "1"}]}',
        "data, record 1: .*TriviaQA",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_malformed_files_name_file_and_line(write, case):
    content, message = BAD[case]
    with pytest.raises(InputError, match=message):
        read_questions(write(content))


def test_deep_nesting_is_malformed_not_a_crash(write):
    with pytest.raises(InputError, match="data"):
        read_questions(write("[" * 200_000))
    with pytest.raises(InputError, match="data:1"):
        read_questions(write("q\t" + "[" * 5000))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        read_questions(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("names", "count", "regular"),
    [
        (["NQ-open.dev.jsonl"], 3610, False),
        (["WebQuestions.train.json", "WebQuestions.val.json", "WebQuestions.devtest.json"], 3778, False),
        (["WebQuestions.test.json"], 2032, False),
        (["CuratedTrec.curated-train.tsv"], 430, True),
        (["CuratedTrec.curated-test.tsv"], 430, True),
        (["squad-style-24-articles.json"], 632, False),
    ],
)
def test_published_files(shared_data, names, count, regular):
    questions = [question for name in names for question in read_questions(shared_data / name)]
    assert len(questions) == count
    assert {question.is_regex for question in questions} == {regular}
    assert all(question.question.strip() and question.answers for question in questions)


def test_popqa_is_read_by_the_names_of_its_columns(tmp_path):
    header = "id\tsubj\tprop\tobj\tquestion\tpossible_answers\n"
    row = '42\tRome\tcapital of\tItaly\tWhat is Rome the capital of?\t"[""Italy"", ""Italia""]"\n'
    (tmp_path / "popQA.tsv").write_text(header + row)
    (found,) = read_questions(tmp_path / "popQA.tsv")
    assert found == Question("42", "What is Rome the capital of?", ("Italy", "Italia"))
    (tmp_path / "popQA.tsv").write_text(header.replace("possible_answers", "other") + row)
    with pytest.raises(InputError, match=r"popQA\.tsv:1: "):
        read_questions(tmp_path / "popQA.tsv")
    (tmp_path / "popQA.tsv").write_text(header + "42\tRome\n")
    with pytest.raises(InputError, match=r"popQA\.tsv:2: "):
        read_questions(tmp_path / "popQA.tsv")


@pytest.mark.parametrize(
    "text",
    [
        'question,answer\n"Who, then?",Ada\nWhen?,"[""1843"", ""in 1843""]"\n',
        "Answers,qid,Question\nAda,7,\"Who, then?\"\n\"['1843', 'in 1843']\",8,When?\n",
        "question\tanswer\nWho, then?\tAda\nWhen?\t['1843', 'in 1843']\n",
    ],
)
def test_csv_and_tsv_with_a_header(tmp_path, text):
    (tmp_path / "q.csv").write_text(text)
    found = read_questions(tmp_path / "q.csv")
    assert [(each.question, each.answers) for each in found] == [
        ("Who, then?", ("Ada",)),
        ("When?", ("1843", "in 1843")),
    ]
    assert [each.id for each in found] == (["7", "8"] if "qid" in text else ["1", "2"])


def test_csv_whose_answers_have_another_name(tmp_path):
    (tmp_path / "q.csv").write_text("question,Reference\nWho?,Ada\n")
    assert read_questions(tmp_path / "q.csv", answer_field="Reference")[0].answers == ("Ada",)
    for text, message in (
        ("id,question,reference\n1,Who?,Ada\n", r"q\.csv:1: "),
        ("question,answer\nWho?,['x\n", r"q\.csv:2: "),
        ("question,answer\nWho?\n", r"q\.csv:2: 1 .* 2"),
    ):
        (tmp_path / "q.csv").write_text(text)
        with pytest.raises(InputError, match=message):
            read_questions(tmp_path / "q.csv")


def test_json_lines_with_regular_expressions_must_say_so(tmp_path):
    """As in DrQA's CuratedTREC."""
    path = tmp_path / "CuratedTrec-test.txt"
    path.write_text('{"question": "Who?", "answer": ["(John )?Lennon"]}\n{"question": "When?", "answer": ["1980"]}\n')
    with pytest.raises(InputError, match=r"1 of 2.*--regex-answers"):
        read_questions(path)
    assert all(question.is_regex for question in read_questions(path, is_regex=True))
    assert not any(question.is_regex for question in read_questions(path, is_regex=False))


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (1945, ("1945",)),
        ([1945, 2.5, "x"], ("1945", "2.5", "x")),
        (
            {"en": [{"type": "number", "text": "1945", "aliases": ["in 1945"]}], "de": [{"text": "neunzehn"}]},
            ("1945", "in 1945"),
        ),
        ([{"text": "a", "answer_start": 0}, {"text": "b"}], ("a", "b")),
        ({"value": "a", "aliases": ["b"]}, ("a", "b")),
        ({"text": ["a", "b"], "answer_start": [0, 1]}, ("a", "b")),
    ],
)
def test_answers_are_texts_numbers_or_objects_that_hold_them(write, answers, expected):
    record = {"query": "How many?", "answers": answers}
    (found,) = read_questions(write(json.dumps(record) + "\n"))
    assert found.answers == expected


def test_an_unanswerable_question_of_mkqa_is_dropped_and_other_languages_are_named(write, capfd):
    rows = [
        {"query": "a", "answers": {"en": [{"type": "unanswerable", "text": None}]}},
        {"query": "b", "answers": {"en": [{"text": "x"}]}},
    ]
    assert [q.question for q in read_questions(write("".join(json.dumps(row) + "\n" for row in rows)))] == ["b"]
    assert "1 questions dropped" in capfd.readouterr().err
    with pytest.raises(InputError, match=r"data:1: .*de, fi"):
        read_questions(write('{"query": "a", "answers": {"de": [], "fi": []}}\n'))


def test_patterns_that_cannot_be_used_are_said(tmp_path, capsys):
    """All of them wrong meant an exact match of 0, and nothing on stderr."""
    path = tmp_path / "q.jsonl"
    for patterns, odd in ((["a|b", "c+"], 0), (["(", "[", "a{", "*"], 3), (["x" * 2000], 1)):
        path.write_text(json.dumps({"question": "Who?", "answer": patterns}) + "\n")
        read_questions(path, is_regex=True)
        assert (f"{odd} of {len(patterns)} answers" in capsys.readouterr().err) == bool(odd)
        read_questions(path, is_regex=False)
        assert "answers are no" not in capsys.readouterr().err


@pytest.mark.parametrize("written", ['["one", "two"]', "['one', 'two']", ' [ "one", "two" ]\n'])
@pytest.mark.parametrize("field", ["possible_answers", "answers"])
def test_a_list_that_is_written_as_text_is_a_list(write, written, field):
    path = write(json.dumps({"question": "who?", field: written}) + "\n")
    assert read_questions(path)[0].answers == ("one", "two")


def test_a_text_in_brackets_is_a_text(write):
    path = write(
        '{"question": "who?", "answer": "[citation needed]"}\n{"question": "which?", "answer": "", "answers": ["x"]}\n'
    )
    assert [question.answers for question in read_questions(path)] == [("[citation needed]",), ("x",)]
