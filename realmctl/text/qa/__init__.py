"""Question answering without a model: questions, answers, scoring, splits."""
