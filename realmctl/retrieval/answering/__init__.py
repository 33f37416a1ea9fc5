"""From questions to answers: readers at work, evidence, evaluation."""
