"""The readers p(y|z,x) of pre-training: one seam, and one file for each kind."""
