"""Processes and signals: workers, torchrun's processes, stop signals, and children that end with their parent."""
