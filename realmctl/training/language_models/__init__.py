"""Training of models that write text, and the kNN-LM: baselines of REALM that have no learned retriever."""
