"""A projection by principal component analysis (PCA): the start of a retriever that has not been trained.

A random projection of a sentence encoder's vectors loses part of what the encoder knows. The leading principal components
of the blocks' vectors keep most of it. Legend: N vectors, H hidden, D projection.
"""

from __future__ import annotations

import torch
from torch import Tensor

from realmctl.errors import ConfigError


def pca_projection(pooled_NH: Tensor, projection: int) -> tuple[Tensor, Tensor]:
    """Return the weight and bias of the linear map x -> V (x - mean), where V holds the leading components as rows.

    Computed in float64 from the covariance matrix. Components are ordered by falling variance. The sign of a component
    is chosen so that its entry of largest magnitude is positive. So the same vectors give the same projection.

    Args:
        pooled_NH: Pooled vectors, any floating dtype.
        projection: Number of components D.

    Returns:
        weight_DH, with orthonormal rows, and bias_D = -V mean; both float32.

    Raises:
        ConfigError: D exceeds H, or there are not more than D vectors.
    """
    count, hidden = pooled_NH.shape
    require_enough(count, hidden, projection)
    vector_NH = pooled_NH.double()
    mean_H = vector_NH.mean(0)
    centred_NH = vector_NH - mean_H
    component_HH = torch.linalg.eigh(centred_NH.T @ centred_NH).eigenvectors  # columns, by rising variance
    component_DH = component_HH.flip(1)[:, :projection].T
    largest_D1 = component_DH.gather(1, component_DH.abs().argmax(1, keepdim=True))
    component_DH = component_DH * largest_D1.sign()
    return component_DH.float().contiguous(), -(component_DH @ mean_H).float()


def require_enough(count: int, hidden: int, projection: int) -> None:
    """Raise ConfigError unless `count` vectors of width `hidden` have `projection` principal components."""
    if projection > hidden:
        raise ConfigError(
            f"PCA cannot project vectors of width {hidden} to width {projection}. Use --projection {hidden} or less, or "
            "--projection-init random."
        )
    if count <= projection:
        raise ConfigError(
            f"PCA to width {projection} needs more than {projection} blocks, and there are {count}. Use a smaller "
            "--projection, or --projection-init random."
        )
