"""Sources that lie elsewhere: what an address of the web, of S3 or of the Hugging Face hub names is copied, and then read and hashed like a file."""

OFFERS = {
    "realmctl.remotes": {
        "https": "realmctl.extras.remote.web:WEB",
        "http": "realmctl.extras.remote.web:WEB",
        "s3": "realmctl.extras.remote.s3:S3",
        "hf": "realmctl.extras.remote.hub:HUB",
    },
}
