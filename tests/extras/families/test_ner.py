"""Taggers of other families."""

import pytest
from transformers import AutoModelForTokenClassification

from realmctl.models.families.known import family
from realmctl.models.ner import EntityRecognizer
from tests.fixtures import families


@pytest.mark.parametrize("model_type", ["roberta", "xlm-roberta", "mpnet"])
def test_a_tagger_whose_positions_begin_behind_padding(tmp_path, model_type):
    """RoBERTa's 514 positions are 512 tokens, also where its tokenizer states no limit."""
    words, sizes = families.tokenizer(model_type), {"hidden_size": 16, "num_hidden_layers": 1, "intermediate_size": 16}
    config = family(model_type).config(
        vocab_size=len(words), num_attention_heads=2, max_position_embeddings=42, pad_token_id=1, num_labels=3, **sizes
    )
    AutoModelForTokenClassification.from_config(config).save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)
    assert len(EntityRecognizer(tmp_path, device="cpu")(["Ada wrote " * 100, "Ada"])) == 2
