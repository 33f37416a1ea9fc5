"""What others published, measured beside our ways: TSDAE as sentence-transformers has it.

Wang et al. 2021, "TSDAE: Using Transformer-based Sequential Denoising Auto-Encoder for Unsupervised Sentence Embedding Learning": a decoder
rebuilds a sentence from the vector of what is left of it after three words in five are deleted. Rate and decoder are those of the paper; steps and
batches are those of the other arms.
"""

import random
from pathlib import Path
from typing import Any

import torch

from realmctl.artifacts import Artifact
from realmctl.corpus.corpus import Corpus
from realmctl.models.precision import pick_device

DELETED, RATE = 0.6, 3e-5
FEWEST_WORDS = 5


def damaged(sentence: str, rng: random.Random) -> str:
    """The sentence without three words in five; one word at least is left."""
    words = sentence.split()
    return " ".join(word for word in words if rng.random() >= DELETED) or rng.choice(words)


def train_tsdae(encoder: str, blocks: Artifact, seed: int, steps: int, batch_size: int, to: Path) -> bool:
    """Train a sentence encoder on the sentences of blocks, and write it as sentence-transformers does. False: that package is not installed."""
    try:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.losses import DenoisingAutoEncoderLoss
    except ImportError:
        return False
    rng = random.Random(seed)
    torch.manual_seed(seed)
    found = (sentence for block in Corpus(blocks) for sentence in block.sentence_texts())
    sentences = [each for each in found if len(each.split()) >= FEWEST_WORDS]
    model = SentenceTransformer(encoder, device=str(pick_device("auto")))
    loss = DenoisingAutoEncoderLoss(model, tie_encoder_decoder=True).to(model.device)
    loss.train()
    optimizer = torch.optim.AdamW(loss.parameters(), lr=RATE, weight_decay=0.0)
    for _ in range(steps):
        drawn = rng.sample(sentences, min(batch_size, len(sentences)))
        pair: list[dict[str, Any]] = []
        for texts in ([damaged(each, rng) for each in drawn], drawn):
            features = model.preprocess(texts)
            pair.append({name: value.to(model.device) for name, value in features.items() if hasattr(value, "to")})
        optimizer.zero_grad()
        loss(pair, torch.empty(0)).backward()
        torch.nn.utils.clip_grad_norm_(loss.parameters(), 1.0)
        optimizer.step()
    model.save(str(to))
    return True
