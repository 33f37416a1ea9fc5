"""What is trained: one file for each objective, and what each of them needs."""
