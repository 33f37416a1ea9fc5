"""Live curves of a run: TensorBoard, trackio, Weights & Biases, MLflow."""

OFFERS = {
    "realmctl.options.training": {"track": "realmctl.extras.trackers.tracker:Tracked"},
    "realmctl.trackers": {
        "tensorboard": "realmctl.extras.trackers.tracking:TensorBoard",
        "trackio": "realmctl.extras.trackers.tracking:Trackio",
        "wandb": "realmctl.extras.trackers.tracking:Wandb",
        "mlflow": "realmctl.extras.trackers.tracking:Mlflow",
    },
}
