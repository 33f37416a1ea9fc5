"""How work runs: worker processes, the processes of torchrun, signals, and the tie between a child and its parent."""
