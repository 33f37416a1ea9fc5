"""Live curves of a run: TensorBoard, trackio, Weights & Biases, MLflow."""

HERE = "realmctl.extras.trackers.tracking:"
OFFERS: dict[str, dict[str, str]] = {
    "realmctl.trackers": {
        "tensorboard": HERE + "TensorBoard",
        "trackio": HERE + "Trackio",
        "wandb": HERE + "Wandb",
        "mlflow": HERE + "Mlflow",
    },
}
