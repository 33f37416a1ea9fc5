"""Index refresh: an index that ages while training goes on, and is replaced. Begin with `protocol`, which tells the whole story.

`index_in_use` is what training sees; `kinds` decides when and where an index is made; `index_maker` makes it; `refresher` is the
process that does so beside the trainer, and `child` keeps it alive.
"""
