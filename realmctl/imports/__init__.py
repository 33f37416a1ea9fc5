"""What `realmctl import` reads: published REALM checkpoints, encoders of other projects, and their blocks."""
