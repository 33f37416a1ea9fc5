"""Processes and signals: workers, batches of rows, torchrun's processes, stop signals, and children that end with their parent."""
