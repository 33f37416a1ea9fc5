"""The first dense search of a process without PyTorch: one question of a dozen wordpieces through a BERT, in NumPy.

Importing PyTorch takes longer than such a search. Questions in number, other families and devices are left to the searcher.
"""

OFFERS = {"realmctl.rankers": {"dense": "realmctl.extras.quick_search.dense:QuickDense"}}
