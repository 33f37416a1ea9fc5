"""Maximum inner product search: takes vectors, returns scores and row ids. Does not import artifacts, models or text."""
