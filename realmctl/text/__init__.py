"""Strings in, strings out: dump and corpus readers, sentences, wordpieces, greedy blocks, salient spans, answers."""
