"""Measures of models on held-out sentences and questions: retrieval utility, kNN-LM, the best weights on dev."""
