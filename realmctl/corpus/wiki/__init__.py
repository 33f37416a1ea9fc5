"""Wikipedia: read pages from dumps, and turn wikitext into prose."""
