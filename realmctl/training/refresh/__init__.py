"""Index refresh: an index that ages while training goes on, and is replaced. `protocol` tells the whole story; read it first."""
