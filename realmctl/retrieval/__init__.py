"""Where text, model and index meet."""
