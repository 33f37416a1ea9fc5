"""Tiny models and batches."""

from tests.fixtures.tiny_models import batch, collator, mlm, seeded

__all__ = ["batch", "collator", "mlm", "seeded"]
