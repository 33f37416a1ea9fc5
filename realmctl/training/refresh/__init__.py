"""The index that stays fresh: the trainer, the refresher, and the folder that they share."""
