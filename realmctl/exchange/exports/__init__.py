"""What `realmctl export` writes beside models: passages, vectors and training files of other tools; cards and the hub."""
