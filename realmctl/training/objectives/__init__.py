"""The training objectives, one file each, with their masking, pairing and evaluation."""
