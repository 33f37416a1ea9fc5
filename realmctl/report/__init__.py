"""One HTML file that says how a run went: curves, where questions fail, and the evidence of each answer."""
