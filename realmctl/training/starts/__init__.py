"""Where a training starts: a BERT, weights in closed form, a retriever, a model to answer with."""
