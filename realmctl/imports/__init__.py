"""Published sentence encoders into retrievers."""
