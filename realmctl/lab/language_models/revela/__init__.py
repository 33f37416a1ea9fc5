"""Revela: a retriever learns from the in-batch attention of a language model (Cai et al. 2025, arXiv 2506.16552).

Why it is here: no maintained toolkit has it, and by its authors it finds more than REPLUG, which `pretrain --retriever-loss replug` is.
"""
