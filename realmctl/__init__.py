"""realmctl: retrieval-augmented language-model pre-training, from a Wikipedia dump to an EM score."""

__version__ = "0.1.0"
