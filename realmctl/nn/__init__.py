"""Neural networks: they take tensors and folders of weights, and return tensors. This package does not import artifacts."""
