"""A language model judges what searches found: `judge` makes relevance judgements where nobody has made any.

Why it is here: cloze recall orders kinds of training unlike people's questions do (docs/results/adapt.md), so searches on documents without labels need another judge. How far
one is to be trusted is measured with it: agreement with itself, and with people where some have judged.
"""

OFFERS = {"realmctl.stages": {"judge": "realmctl.lab.judging.judge:Judge"}}
