"""Several stages as one command: pipeline files that the package ships, and what runs them."""
