"""Live curves of a run: TensorBoard, trackio, Weights & Biases, MLflow."""

OFFERS: dict[str, dict[str, str]] = {}
