"""The files of weights in a folder that transformers wrote: one file, or parts that an index lists."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from realmctl.errors import InputError, as_realmctl_error, one_line
from realmctl.models.bert.foreign_config import read_fields
from realmctl.models.weights import load_pickled, load_tensors

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
"""The first of these is read that the folder has, whole or in parts."""


def load_weights(folder: Path) -> tuple[list[Path], dict[str, Tensor]]:
    """Return the files of weights in a folder and their tensors by name, memory-mapped. Nothing in a file is executed.

    Raises InputError when there are none, or when one is missing, damaged or holds more than plain tensors.
    """
    files, tensors = _files(folder), dict[str, Tensor]()
    for path in files:
        tensors |= load_pickled(path) if path.suffix == ".bin" else load_tensors(path)
    return files, tensors


def _files(folder: Path) -> list[Path]:
    for name in WEIGHTS:
        if (folder / name).is_file():
            return [folder / name]
        if (folder / f"{name}.index.json").is_file():
            return _parts(folder / f"{name}.index.json")
    others = {"ONNX": ("*.onnx", "onnx/*.onnx"), "GGUF": ("*.gguf",), "OpenVINO": ("openvino/*.xml",)}
    if found := next((name for name, places in others.items() if any(any(folder.glob(each)) for each in places)), None):
        raise InputError(f"{folder} holds {found} alone, which is not read. Get the weights as model.safetensors.")
    raise InputError(
        f"{folder} holds no weights: neither {' nor '.join(WEIGHTS)}, whole or in parts. Get the folder again."
    )


def _parts(index: Path) -> list[Path]:
    try:
        listed = read_fields(index).get("weight_map")
    except (OSError, ValueError, RecursionError) as error:
        raise as_realmctl_error(error, index) or InputError(
            f"Cannot read {index}: {one_line(error)}. Get the folder again."
        ) from None
    if not isinstance(listed, dict) or not all(isinstance(name, str) and "\0" not in name for name in listed.values()):
        raise InputError(f"{index} does not list files of weights. Get the folder again.")
    paths = [index.parent / name for name in sorted(set(listed.values()))]
    for path in paths:
        if path.parent != index.parent or path.suffix not in (".bin", ".safetensors") or not path.is_file():
            raise InputError(
                f"{index} names {path.name}, which is not a file of weights in the same folder. Get the folder again."
            )
    return paths
