"""Weights on disk, as safetensors. Loading is strict: a file that does not fit raises an error that names the tensor."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from realmctl.artifacts.disk import not_as_written, require_regular, share_as_folder
from realmctl.errors import InputError, NotFiniteError, QualityError, ResourceError, as_realmctl_error, one_line

OS_ERROR = re.compile(r"\(os error (\d+)\)")
"""How safetensors, which is written in Rust, names an error of the system."""
REFUSED_GLOBAL = re.compile(r"GLOBAL ([\w.]+)")
"""How PyTorch names what a pickle asks for."""


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write named tensors as safetensors, each contiguous and on the CPU. Makes the parent folder.

    Raises:
        QualityError: A tensor holds a number that is not finite.
        OSError: The system refused to write, for example because the disk is full (safetensors itself raises an
            error without an error number then), or the file does not hold what was written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    require_sound(plain, path)
    try:
        save_file(plain, path, metadata={"format": "pt"})
    except SafetensorError as error:
        number = OS_ERROR.search(str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error
    share_as_folder(path)
    _read_back(plain, path)


_DRAWS = ("normal_", "uniform_", "kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_")
"""By name, because transformers has its own of each."""


class WithoutDraws(TorchFunctionMode):
    """Within this context new modules hold zeros where they would draw weights at random.

    For modules whose weights are all read from a file next: for 110 M weights the draws take several times as long as reading. It holds in this
    thread alone.
    """

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function.__name__ in _DRAWS:
            tensor: Tensor = args[0] if args else kwargs["tensor"]  # those of `nn.init` are given it by name
            return tensor.detach().zero_()
        return function(*args, **(kwargs or {}))


def first_not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """Return the name of the first tensor that holds NaN or an infinite number. None when all numbers are finite."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and tensor.numel():
            numbers = tensor.detach() if tensor.itemsize > 1 else tensor.detach().float()  # float8 has no such function
            least, most = torch.aminmax(numbers)  # NaN goes through
            if not bool(torch.isfinite(least) & torch.isfinite(most)):
                return name
    return None


def require_sound(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Check weights before they are written. Raises QualityError that names a tensor with a number that is not finite."""
    if name := first_not_finite(tensors):
        raise QualityError(
            f"{path} is not written: the tensor '{name}' holds a number that is not finite (NaN or infinite). Its training diverged, "
            "or what it was computed from is too large. Use a lower --lr, or smaller inputs."
        )


def require_finite(tensors: Mapping[str, Tensor], where: Path | str) -> None:
    """Check weights that were read. Raises InputError that names a tensor with a number that is not finite."""
    if name := first_not_finite(tensors):
        raise InputError(
            f"The tensor '{name}' in {where} holds a number that is not finite (NaN or infinite), so nothing can be computed with these "
            "weights. Get them again, or train them again with a lower --lr."
        )


def require_finite_scores(scores: Tensor, whose: object) -> None:
    """Check what a model computed. Raises NotFiniteError that names the model: finite weights may be too large to compute with."""
    if first_not_finite({"scores": scores}):
        raise NotFiniteError(
            f"{whose} gives scores that are not finite (NaN or infinite), though its weights are: its training probably diverged. Train "
            "it again with a lower --lr, or use another model."
        )


def _read_back(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Compare a file that was just written with the tensors, bit by bit. Raises OSError when they differ."""
    try:
        with safe_open(path, framework="pt") as file:
            equal = set(file.keys()) == set(tensors) and all(
                torch.equal(_bits(file.get_tensor(name)), _bits(tensor)) for name, tensor in tensors.items()
            )
    except (OSError, SafetensorError) as error:
        if isinstance(known := as_realmctl_error(_meant(error, path), path), ResourceError):
            raise known from None
        equal = False
    if not equal:
        raise not_as_written(path)


def _bits(tensor: Tensor) -> Tensor:
    return tensor.contiguous().flatten().view(torch.uint8)


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file. Raises InputError when it is missing or corrupt, or no regular file."""
    try:
        require_regular(path, path.stat())
        tensors: dict[str, Tensor] = load_file(path)
    except (OSError, SafetensorError) as error:
        raise as_realmctl_error(_meant(error, path), path) or InputError(
            f"Cannot read weights from {path}: {error}. The file is missing, cut short or not safetensors; "
            "copy it again or make the artifact again."
        ) from error
    return tensors


def _meant(error: Exception, path: Path) -> Exception:
    """What went wrong when safetensors says that a file is missing: it says so of every file that it cannot open."""
    if isinstance(error, FileNotFoundError):
        try:
            os.close(os.open(path, os.O_RDONLY))
        except OSError as found:
            return found
        return OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
    return error


def load_pickled(path: Path) -> dict[str, Tensor]:
    """Read named tensors from a file of `torch.save`, with the loader that makes tensors and calls nothing else.

    Raises:
        InputError: The file holds anything else, or is no regular file. PyTorch's own message is not repeated, because it
            advises how to execute what the file holds.
    """
    try:
        require_regular(path, path.stat())
        tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except Exception as error:  # torch raises many kinds for a file that is not plain weights
        if known := as_realmctl_error(error, path):
            raise known from None
        if isinstance(error, OSError):
            why = one_line(error)
        else:
            name = REFUSED_GLOBAL.search(str(error))
            why = (
                f"it asks for {name[1]}, which plain weights do not need" if name else "it is no file of plain weights"
            )
        raise InputError(
            f"{path} is refused: {why}. Only plain tensors are read, and nothing in the file was executed. Get it from a source "
            "that you trust, as safetensors."
        ) from None
    if not isinstance(tensors, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in tensors.items()
    ):
        raise InputError(f"{path} holds something other than named tensors. Get the file again.")
    return tensors


def load_into(module: nn.Module, tensors: Mapping[str, Tensor], where: Path | str) -> None:
    """Copy `tensors` into `module`.

    Raises:
        InputError: A tensor is missing, extra, of another shape, or holds a number that is not finite. The message names it.
    """
    expected = module.state_dict()
    for name, tensor in expected.items():
        if name not in tensors:
            raise InputError(
                f"The weights in {where} lack the tensor '{name}' of shape {tuple(tensor.shape)}. "
                "They belong to another model, or their config.json does not describe them."
            )
        if tensors[name].shape != tensor.shape:
            raise InputError(
                f"The tensor '{name}' in {where} has shape {tuple(tensors[name].shape)}, but its config.json "
                f"asks for {tuple(tensor.shape)}. Use the config.json that the weights were saved with."
            )
    if extra := sorted(set(tensors) - set(expected)):
        raise InputError(
            f"The weights in {where} hold {len(extra)} tensor(s) that this model does not have. The first "
            f"is '{extra[0]}'. They belong to another kind of model."
        )
    module.load_state_dict(dict(tensors))
    require_finite(module.state_dict(), where)  # as float32: a larger type may hold numbers that are infinite here


def hash_tensors(tensors: Mapping[str, Tensor]) -> str:
    """Return the sha256 (hex) of names, dtypes, shapes and bytes. The order of the mapping does not matter."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
