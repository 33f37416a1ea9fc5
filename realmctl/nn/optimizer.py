"""BERT's optimiser and schedule (google-research/bert, optimization.py), which are not PyTorch's defaults.

Adam without bias correction, epsilon 1e-6, weight decay beside the gradient and never on norms or biases,
global-norm clipping, and a linear decay that warm-up does not shift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, overload

import torch
from torch import Tensor, nn

_LONG_AGO = 1e9
"""At this step number both bias corrections, 1 - beta ** step, are exactly 1."""


def warmup_steps(total: int) -> int:
    """The warm-up of REALM and ORQA: a tenth of the run, at least 100 and at most 10,000 steps."""
    return min(10_000, max(100, total // 10))


def bert_lr(step: int, total: int, warmup: int, base: float) -> float:
    """The rate of update number `step`, from 0: base * step / warmup, then base * (1 - step / total).

    The decay counts from step 0, so the rate drops a little where warm-up ends.
    """
    return base * step / warmup if step < warmup else base * max(0.0, 1 - step / total)


def decay_groups(
    modules: Iterable[nn.Module], weight_decay: float = 0.01, lr_multipliers: Mapping[nn.Module, float] | None = None
) -> list[dict[str, Any]]:
    """Parameter groups: matrices, which decay, and norms, biases and other vectors or numbers, which do not.

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


class BertAdamW(torch.optim.AdamW):
    """BERT's AdamW as PyTorch's fused one whose step counter starts where bias correction has worn off.

    `step` clips the gradients to a global norm of `clip` first; `gradient_norm` is the norm before clipping.
    `bias_correction` is PyTorch's Adam again: without it, second moments that average a thousand steps
    make the first hundreds of steps several times too long, which a short run does not outlive.
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
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, fused=True)
        self.clip = clip
        self.first_step = 0.0 if bias_correction else _LONG_AGO
        self.gradient_norm = torch.zeros(())

    def set_lr(self, lr: float) -> None:
        """Set the learning rate of the next step; groups with a multiplier take that many times as much."""
        for group in self.param_groups:
            group["lr"] = lr * group.get("lr_multiplier", 1.0)

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Clip, then update every parameter that has a gradient."""
        trained = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        self.gradient_norm = nn.utils.clip_grad_norm_(trained, self.clip)
        for parameter in trained:
            if not self.state[parameter]:
                self.state[parameter] = {
                    "step": torch.full((), self.first_step, dtype=torch.float32, device=parameter.device),
                    "exp_avg": torch.zeros_like(parameter),
                    "exp_avg_sq": torch.zeros_like(parameter),
                }
        loss: float | None = super().step(closure)
        return loss
