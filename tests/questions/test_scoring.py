"""Which scorers are applied to which answers, and when they disagree."""

from __future__ import annotations

import pytest

from realmctl.questions.questions import Question
from realmctl.questions.regexes import AnswerVerdict
from realmctl.questions.scoring import ScoredPrediction, fitting_scorers, judged


def test_the_chosen_scorer_is_the_headline():
    plain, pattern = Question("1", "q", ("a",)), Question("2", "q", ("a",), is_regex=True)
    assert fitting_scorers([plain], "dpr") == ["dpr", "orqa", "squad"]
    assert fitting_scorers([plain, pattern], "auto") == ["regex-match", "regex-search"]
    assert judged(pattern, "b", ["regex-match"]).verdicts == {"regex-match": AnswerVerdict.NO_MATCH}


@pytest.mark.parametrize("verdict", AnswerVerdict)
def test_scorers_disagree_where_one_accepts_and_another_does_not(verdict):
    """A pattern that only one of them can run is wrong for both."""
    verdicts = {"orqa-regex": verdict, "dpr-regex": AnswerVerdict.NO_MATCH}
    scored = ScoredPrediction(Question("", "?", ("a",), True), "a", verdicts, None)
    assert scored.disagrees == (verdict is AnswerVerdict.MATCH)
