"""What is watched while pre-training runs: alarms, candidates, recall on held-out questions."""
