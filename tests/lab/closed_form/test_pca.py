"""The PCA projection beside an independent computation: the singular value decomposition of the centred vectors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from realmctl.errors import ConfigError
from realmctl.lab.closed_form.pca import pca_projection


def vectors_of(count: int = 200, hidden: int = 12) -> torch.Tensor:
    """Vectors with a distinct variance along each of `hidden` rotated axes, and a mean far from 0."""
    rng = np.random.default_rng(0)
    rotation, _ = np.linalg.qr(rng.normal(size=(hidden, hidden)))
    return torch.from_numpy(rng.normal(size=(count, hidden)) * np.arange(1, hidden + 1) @ rotation + 30.0).float()


def test_rows_are_the_leading_right_singular_vectors() -> None:
    pooled_NH = vectors_of()
    weight_DH, bias_D = pca_projection(pooled_NH, 5)
    plain = pooled_NH.double().numpy()
    _, _, expected = np.linalg.svd(plain - plain.mean(0), full_matrices=False)
    cosine = np.abs((weight_DH.double().numpy() * expected[:5]).sum(1))
    np.testing.assert_allclose(cosine, 1.0, atol=1e-6)
    assert weight_DH.dtype == bias_D.dtype == torch.float32
    np.testing.assert_allclose(weight_DH @ weight_DH.T, np.eye(5), atol=1e-5)


def test_projected_vectors_are_centred_and_ordered_by_variance() -> None:
    pooled_NH = vectors_of()
    projected_ND = torch.nn.functional.linear(pooled_NH, *pca_projection(pooled_NH, 12))
    assert projected_ND.mean(0).abs().max() < 1e-3
    variance_D = projected_ND.var(0)
    assert (variance_D[:-1] > variance_D[1:]).all()
    assert variance_D.sum() == pytest.approx(float(pooled_NH.var(0).sum()), rel=1e-4)


def test_signs_are_fixed() -> None:
    """The entry of largest magnitude is positive, whatever the signs that the eigensolver chose."""
    weight_DH, _ = pca_projection(vectors_of(), 6)
    assert (weight_DH.gather(1, weight_DH.abs().argmax(1, keepdim=True)) > 0).all()
    again_DH, _ = pca_projection(-vectors_of(), 6)
    torch.testing.assert_close(again_DH, weight_DH, atol=1e-5, rtol=0)


def test_a_projection_that_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"12.*13"):
        pca_projection(vectors_of(), 13)
    with pytest.raises(ConfigError, match="8 blocks"):
        pca_projection(vectors_of(count=8), 8)
