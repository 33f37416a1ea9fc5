"""A generated miniature world: entities with random facts, an encyclopedia and sentences about them, and questions."""
