"""From questions to answers: answerers, evidence and evaluation."""
