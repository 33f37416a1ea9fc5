"""Where text, models and indexes meet: embedding blocks, searching them, answering from them."""
