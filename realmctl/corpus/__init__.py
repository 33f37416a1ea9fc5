"""Documents in, blocks out: formats, wikitext, sentences and blocks; and blocks read back from their artifact."""
