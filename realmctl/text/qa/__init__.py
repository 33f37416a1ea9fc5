"""Question answering without a model: questions, answers, scorers, train and dev splits."""
