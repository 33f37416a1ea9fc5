"""What is optional for a user: one folder or one file for each extra. The core imports none of it, and no extra imports another."""
