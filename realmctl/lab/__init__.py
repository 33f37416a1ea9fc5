"""Methods beside REALM: one folder or one file for each. The core imports none of it.

A method comes here first. It has tests and a place on a page of results, and says why it is here. It goes when it has served, or when its page shows that it
does not help.
"""
