"""Queries, rankings and relevance judgements as TREC and BEIR write them, and the measures of a ranking."""
