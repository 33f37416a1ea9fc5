"""What language models are given to read: questions, answers, blocks and hidden spans as their tokens.

The same in pre-training, fine-tuning, reading and answering.
"""

from __future__ import annotations

from dataclasses import dataclass

from realmctl.errors import ConfigError
from realmctl.lab.language_models.models.model import LanguageModel
from realmctl.spans.query import HiddenText

PLACE = "{question}"
"""Where the question stands in a prompt."""
SENTINELS = ("<extra_id_0>", "<extra_id_1>")
"""T5's sentinels: the first stands for the hidden span, the second ends the target."""
BLOCK_PROMPT = "{title}\n{block}\n\n"
"""How a block stands before the text that is read with it."""


@dataclass(frozen=True)
class BlockPrompt:
    """Text around a block, which stands before what is read with it: `{title}` may stand before `{block}`. The null document has none of it.

    Raises ConfigError for a text without its one `{block}`.
    """

    text: str = BLOCK_PROMPT

    def __post_init__(self) -> None:
        before, _, after = self.text.partition("{block}")
        if self.text.count("{block}") != 1 or "{title}" in after or before.count("{title}") > 1:
            raise ConfigError(
                f"--block-prompt {self.text!r} needs {{block}} once, and at most one {{title}}, before it, such as {BLOCK_PROMPT!r}."
            )

    @classmethod
    def named(cls, text: str | None) -> BlockPrompt:
        """Return the prompt that a user names, or the default."""
        return cls() if text is None else cls(text)

    def filled(self, title: str, block: str) -> str:
        """Return the text that stands before what is read with a block."""
        before, _, after = self.text.partition("{block}")
        return before.replace("{title}", title) + block + after

    def tokens(self, model: LanguageModel, title: str, block: str) -> tuple[list[int], list[int], list[int]]:
        """Return the tokens before a block's text, of the text, and after it."""
        before, _, after = self.text.partition("{block}")
        return model.ids(before.replace("{title}", title)), model.ids(block), model.ids(after)


def span_texts(text: HiddenText) -> tuple[str, str]:
    """Return source and target of T5's training: a sentinel stands for what is hidden, and the target has it between sentinels."""
    hidden, last = SENTINELS
    return f"{text.before}{hidden}{text.after}", f"{hidden} {text.hidden} {last}"


def sentinel_ids(model: LanguageModel) -> tuple[int, int] | None:
    """Return the tokens of T5's sentinels; None for a model that is not of T5's kind or has none."""
    first, last = map(model.tokenizer.token_to_id, SENTINELS)
    return None if first is None or last is None or not model.reads_source_apart else (first, last)


def split_at(model: LanguageModel, before: str, after: str) -> tuple[list[int], list[int]]:
    """Return the tokens of one text in two parts. Space between the parts, and a token that lies in both, belong to the second."""
    encoded, end = model.tokenizer.encode(before + after, add_special_tokens=False), len(before.rstrip())
    first = next((place for place, (_, stop) in enumerate(encoded.offsets) if stop > end), len(encoded.ids))
    return encoded.ids[:first], encoded.ids[first:]


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
    if (most := model.positions) and tokens > most:
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
