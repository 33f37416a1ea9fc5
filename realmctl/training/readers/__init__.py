"""The readers p(y|z,x) of pre-training: one seam, and REALM's own."""
