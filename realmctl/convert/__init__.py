"""Files of other projects: checkpoints, encoders and blocks in (imports/), folders, vectors and passages out (exports/)."""
