"""Neural networks. They read tensors and folders of weights. This package does not import artifacts."""
