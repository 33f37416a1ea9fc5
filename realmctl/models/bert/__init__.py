"""BERT: its layers, its states, its masked-language-model head, and its folders on disk."""
