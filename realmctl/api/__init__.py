"""The Python API: `realmctl.load` and `realmctl.stages`. This file imports nothing, so that both import fast.

loading.py     `load`: an artifact, opened by its kind
blocks.py      blocks with their texts, and where the blocks of an artifact are found
search.py      text search: questions in, retrieved blocks out
index.py       an index or embeddings: vectors in, rows out
retriever.py   a retriever: texts in, vectors out
model.py       a pre-trained model: search, and masks filled with retrieved blocks
qa_model.py    a fine-tuned model: search, and answers with evidence
stages.py      the stages, by class name
"""
