"""How much BM25 counts beside an encoder, from questions that people asked, without answers.

Why it is here: on collections where one of the two finds much more than the other, search says so for each question only weakly, and a few hundred questions together say it well (docs/results/hybrid.md).
"""

OFFERS = {"realmctl.stages": {"weigh-bm25": "realmctl.lab.asked_weight.weigh_bm25:WeighBm25"}}
