"""Language models that write text: sequence-to-sequence models such as T5, and causal models such as GPT-2."""
