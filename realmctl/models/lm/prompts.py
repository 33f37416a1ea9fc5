"""Questions and answers as tokens of a language model, the same in fine-tuning and in answering."""

from __future__ import annotations

from realmctl.errors import ConfigError
from realmctl.models.lm.model import LanguageModel

PLACE = "{question}"
"""Where the question stands in a prompt."""


def default_prompt(model: LanguageModel) -> str:
    """Return the prompt of a model whose user names none: the question alone for T5's kind, else with a cue for the answer."""
    return PLACE if model.reads_source_apart else f"Question: {PLACE}\nAnswer:"


def check_prompt(model: LanguageModel, prompt: str, length: int) -> None:
    """Raise ConfigError for a prompt that leaves no room for a question."""
    used = len(prompt_ids(model, "", prompt, length))
    if used >= length:
        raise ConfigError(
            f"--prompt has {used} tokens without its question, and --question-length is {length}: no question fits. Use a "
            "shorter prompt, or a larger --question-length."
        )


def check_positions(model: LanguageModel, tokens: int, flags: str) -> None:
    """Raise ConfigError when a row of so many tokens has more positions than the model; T5 has no such limit."""
    most = getattr(model.net.config, "max_position_embeddings", None)
    if isinstance(most, int) and tokens > most:
        raise ConfigError(f"{flags} ask for {tokens} tokens, and the model has {most} positions. Lower them.")


def prompt_ids(model: LanguageModel, question: str, prompt: str, length: int) -> list[int]:
    """Return the tokens of a prompt with its question. A question is cut at its end until the prompt has `length` tokens."""
    before, after = (model.ids(part) if part else [] for part in prompt.split("{question}"))
    whole = model.ids(prompt.replace("{question}", question))
    if len(whole) <= length:
        return whole
    return [*before, *model.ids(question)[: length - len(before) - len(after)], *after]


def answer_ids(model: LanguageModel, text: str) -> list[int]:
    """Return the tokens of an answer. A causal model reads it after a space, because it continues the prompt."""
    return model.ids(text if model.reads_source_apart else f" {text}")
