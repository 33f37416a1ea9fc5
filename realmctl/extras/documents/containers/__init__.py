"""Office documents and books: zip archives of XML, read in a process of its own (program.py), so that no text is lost on the way to a page of HTML."""
