"""Monitoring of pre-training: alarms, statistics of the candidates, recall on held-out questions."""
