"""Wikipedia: dumps into pages, and wikitext into prose."""
