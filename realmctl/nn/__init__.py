"""The neural parts: tensors and folders of weights in, tensors out. Nothing here knows an artifact."""
