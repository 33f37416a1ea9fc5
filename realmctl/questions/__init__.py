"""Questions, answers, scorers and splits; rankings and their measures. No model is needed here."""
