"""Maximum inner product search: vectors in, (scores, ids) out. Knows no artifact, no model and no text."""
