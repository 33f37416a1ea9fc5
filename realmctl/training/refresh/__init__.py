"""Index refresh: the trainer, the refresher, and the folder that they share."""
