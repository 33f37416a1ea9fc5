"""BERT's optimiser and learning-rate schedule (google-research/bert, optimization.py).

They differ from PyTorch's defaults: Adam has no bias correction and an epsilon of 1e-6; weight decay is decoupled from
the gradient and skips norms and biases; gradients are clipped by their global norm; the linear decay counts from step 0,
also with warm-up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from realmctl.errors import InputError
from realmctl.models.bert.modules import Encoder
from realmctl.models.families.known import family_of

_LONG_AGO = 1e9
"""A step number at which both bias corrections, 1 - beta ** step, are exactly 1."""


def bert_lr(step: int, total: int, warmup: int, base: float) -> float:
    """Return the learning rate of update `step`, counted from 0: base * step / warmup, then base * (1 - step / total).

    The decay counts from step 0. So the rate drops a little at the end of warm-up.
    """
    return base * step / warmup if step < warmup else base * max(0.0, 1 - step / total)


def decay_groups(
    modules: Iterable[nn.Module], weight_decay: float = 0.01, lr_multipliers: Mapping[nn.Module, float] | None = None
) -> list[dict[str, object]]:
    """Return parameter groups: matrices with weight decay; norms, biases and other vectors or numbers without.

    Each parameter is in one group. `lr_multipliers`: {module: factor}; the parameters below such a module form groups
    of their own, and the learning rate of these groups is multiplied by the factor.
    """
    multipliers = lr_multipliers or {}
    groups: dict[tuple[float, bool], dict[Tensor, None]] = {(1.0, True): {}, (1.0, False): {}}
    taken: set[Tensor] = set()

    def gather(module: nn.Module, multiplier: float) -> None:
        multiplier = multipliers.get(module, multiplier)
        for parameter in module.parameters(recurse=False):
            if parameter.requires_grad and parameter not in taken:
                taken.add(parameter)
                groups.setdefault((multiplier, parameter.ndim > 1), {})[parameter] = None
        for child in module.children():
            gather(child, multiplier)

    for module in modules:
        gather(module, 1.0)
    return [
        {
            "params": list(parameters),
            "weight_decay": weight_decay * decays,
            **({} if multiplier == 1.0 else {"lr_multiplier": multiplier}),
        }
        for (multiplier, decays), parameters in groups.items()
    ]


def layer_lr_multipliers(base: Encoder, decay: float) -> dict[nn.Module, float]:
    """Return {module: factor} for a learning rate that falls from layer to layer (Clark et al. 2020, arXiv 2003.10555, table 7).

    The last layer has factor 1, each layer below it `decay` times the factor of the layer above, and the embeddings `decay` times
    that of the first layer. Without a module for `decay` 1.
    """
    if decay == 1:
        return {}
    return {module: decay**distance for distance, module in enumerate(reversed(family_of(base).from_below(base)))}


class BertAdamW:
    """BERT's AdamW, computed by PyTorch's fused AdamW.

    To switch bias correction off, the step counter starts at a number where the correction is 1. `bias_correction`
    switches it on again. Short runs need it: without it the first hundreds of updates are several times too large, because
    the second moments average over a thousand steps. `step` first clips the gradients to a global norm of `clip`.
    `gradient_norm` is the norm before clipping. It is no `torch.optim.Optimizer`, whose methods import PyTorch's compiler: a second for each training.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 0.0,
        *,
        weight_decay: float = 0.01,
        eps: float = 1e-6,
        clip: float = 1.0,
        betas: tuple[float, float] = (0.9, 0.999),
        bias_correction: bool = False,
    ) -> None:
        groups = [each if isinstance(each, dict) else {"params": [each]} for each in params]
        self.param_groups: list[dict[str, Any]] = [
            {"lr": lr, "weight_decay": weight_decay, **group} for group in groups
        ]
        self.state: dict[Tensor, dict[str, Tensor]] = {}
        self.eps, self.clip, self.betas = eps, clip, betas
        self.first_step = 0.0 if bias_correction else _LONG_AGO
        self.gradient_norm = torch.zeros(())

    @property
    def _parameters(self) -> list[Tensor]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def set_lr(self, lr: float) -> None:
        """Set the learning rate of the next step. Groups with a multiplier use `lr` times the multiplier."""
        for group in self.param_groups:
            group["lr"] = lr * group.get("lr_multiplier", 1.0)

    @torch.no_grad()
    def step(self) -> None:
        """Clip, then update every parameter that has a gradient."""
        trained = [parameter for parameter in self._parameters if parameter.grad is not None]
        self.gradient_norm = nn.utils.clip_grad_norm_(trained, self.clip)
        for parameter in trained:
            if parameter not in self.state:
                self.state[parameter] = {
                    "step": torch.full((), self.first_step, dtype=torch.float32, device=parameter.device),
                    "exp_avg": torch.zeros_like(parameter),
                    "exp_avg_sq": torch.zeros_like(parameter),
                }
        for group in self.param_groups:
            if updated := [parameter for parameter in group["params"] if parameter.grad is not None]:
                slots = [self.state[parameter] for parameter in updated]
                adamw(
                    updated,
                    [parameter.grad for parameter in updated if parameter.grad is not None],
                    [slot["exp_avg"] for slot in slots],
                    [slot["exp_avg_sq"] for slot in slots],
                    [],
                    [slot["step"] for slot in slots],
                    fused=True,
                    amsgrad=False,
                    beta1=self.betas[0],
                    beta2=self.betas[1],
                    lr=group["lr"],
                    weight_decay=group["weight_decay"],
                    eps=self.eps,
                    maximize=False,
                )

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    def tensors(self) -> dict[str, Tensor]:
        """Return the state for a checkpoint, as tensors named `<parameter number>.<name>`.

        Learning rates and weight decays are left out: they are settings, and the schedule sets the rate at each step.
        """
        numbered = [(number, self.state.get(parameter, {})) for number, parameter in enumerate(self._parameters)]
        return {f"{number}.{name}": value for number, slots in numbered for name, value in slots.items()}

    def restore(self, tensors: Mapping[str, Tensor], where: Path | str) -> None:
        """Load what `tensors` gave. Raises InputError when a tensor does not fit its parameter."""
        parameters = self._parameters
        self.state = {}
        for key, tensor in tensors.items():
            number, _, name = key.partition(".")
            if int(number) >= len(parameters) or (tensor.ndim and tensor.shape != parameters[int(number)].shape):
                raise InputError(
                    f"The optimizer state in {where} has a tensor '{key}' of shape {tuple(tensor.shape)} that "
                    "fits no parameter of this model. The checkpoint is from a run with another model."
                )
            parameter = parameters[int(number)]
            self.state.setdefault(parameter, {})[name] = tensor.to(parameter.device)
