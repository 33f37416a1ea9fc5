"""realmctl: retrieval-augmented language-model pre-training, from a Wikipedia dump to an exact-match score."""

__version__ = "0.1.0"
