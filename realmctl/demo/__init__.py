"""`realmctl demo`: the whole pipeline on a generated miniature world. `world/` generates it; `demo.yaml` is the pipeline."""
