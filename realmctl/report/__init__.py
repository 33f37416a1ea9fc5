"""One HTML file about runs: curves, the step at which questions fail, and the evidence of each answer."""
