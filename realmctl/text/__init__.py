"""Text without models: streams, Wikipedia dumps, corpora, wordpieces, blocks, salient spans, questions and scoring."""
