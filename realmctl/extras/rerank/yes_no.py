"""Language models that answer whether a text answers a question, by the logits of two tokens behind it, such as Qwen3-Reranker.

sentence-transformers stores them as a Transformer with a LogitScore behind it, and a chat template with the roles `query` and `document`. A template is a
program: it is run once, to see what stands around question and text, and only if it does no more than put them in their places.
Legend: N pairs, L tokens of the longest pair of a batch, H hidden.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from torch import Tensor, nn

from realmctl.errors import InputError, one_line
from realmctl.extras.rerank.folder import refused
from realmctl.models.inputs import TokenBatch

TEMPLATE = "chat_template.jinja"
MAX_TEMPLATE_BYTES = 2**16
QUESTION, TEXT = "\ue000question\ue001", "\ue000text\ue001"
PLAIN = (
    *(
        nodes.Output,
        nodes.TemplateData,
        nodes.Name,
        nodes.Const,
        nodes.Getattr,
        nodes.Getitem,
        nodes.Filter,
        nodes.Test,
    ),
    *(nodes.If, nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Add, nodes.Concat),
    *(nodes.For, nodes.Assign, nodes.Template, nodes.Keyword, nodes.Neg, nodes.Slice),
)
"""What a template may consist of: no call, no number that grows, no loop within a loop."""
FILTERS = ("selectattr", "rejectattr", "map", "first", "last", "trim", "list", "default", "length", "string")
ASSIGNED = (nodes.Name, nodes.Const, nodes.Getattr, nodes.Getitem, nodes.Filter, nodes.Keyword, nodes.Neg, nodes.Slice)
"""What may be given a name. Texts that are joined and named again could double with each line."""
QWEN = (
    '<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can only be "yes" or "no".'
    "<|im_end|>\n<|im_start|>user\n<Instruct>: {instruct}\n<Query>: ",
    "\n<Document>: ",
    "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
)
"""What stands around question and text in Qwen3-Reranker, where its folder has no template for them."""
INSTRUCT = "Given a web search query, retrieve relevant passages that answer the query"


@dataclass(frozen=True)
class Around:
    """What stands before the question, between question and text, and behind the text. kept: tokens of the end, which no cut takes."""

    before: str
    between: str
    behind: str
    kept: tuple[int, ...] = ()

    def filled(self, question: str, text: str) -> str:
        """Return what the model reads."""
        return f"{self.before}{question}{self.between}{text}{self.behind}"

    def ending(self, tokenizer: Any) -> Around:
        """Return it with the tokens that its end has behind any text."""
        one, other = (
            tokenizer(self.filled(each, each), add_special_tokens=False)["input_ids"] for each in ("0", "1 2 3 4")
        )
        same = [*takewhile(lambda pair: pair[0] == pair[1], zip(reversed(one), reversed(other), strict=False))]
        kept = tuple(token for token, _ in reversed(same)) if len(same) < min(len(one), len(other)) else ()
        return Around(self.before, self.between, self.behind, kept)


def around_of(folder: Path, tokenizer: Any, prompt: str, is_qwen: bool, flag: str) -> Around | None:
    """Return what stands around question and text; None for a model that reads them one behind the other.

    prompt: what the folder says to the model, such as a task. is_qwen: a folder of Qwen3-Reranker without the files of sentence-transformers.

    Raises InputError for a template that does more than put them in their places, or that leaves one of them out.
    """
    source = _template(folder, flag)
    if is_qwen and (source is None or "document" not in source):
        before, between, behind = QWEN
        return Around(before.replace("{instruct}", prompt or INSTRUCT), between, behind).ending(tokenizer)
    if source is None:
        return None
    messages = [{"role": "query", "content": QUESTION}, {"role": "document", "content": TEXT}]
    system = [{"role": "system", "content": prompt}] if prompt else []
    try:
        _require_plain(ImmutableSandboxedEnvironment().parse(source))
        rendered = tokenizer.apply_chat_template([*system, *messages], chat_template=source, tokenize=False)
        before, rest = rendered.split(QUESTION)
        between, behind = rest.split(TEXT)
    except Exception as error:  # a template raises what it likes
        raise _odd(flag, error) from None
    return Around(before, between, behind).ending(tokenizer)


def _odd(flag: str, error: Exception) -> InputError:
    return refused(
        flag, f"its chat template does not put one query and one document into one text ({one_line(error)[:120]})"
    )


def _template(folder: Path, flag: str) -> str | None:
    path, settings = folder / TEMPLATE, folder / "tokenizer_config.json"
    for file in (path, settings):
        if file.is_file() and file.stat().st_size > 2**24:
            raise refused(flag, f"{file.name} is too large")
    try:
        if path.is_file():
            source = path.read_text(encoding="utf-8")
        else:
            held = json.loads(settings.read_text(encoding="utf-8")).get("chat_template") if settings.is_file() else None
            source = held if isinstance(held, str) else ""
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise refused(flag, f"its chat template cannot be read ({one_line(error)})") from None
    if len(source) > MAX_TEMPLATE_BYTES:
        raise refused(flag, f"its chat template has {len(source):,} characters")
    return source or None


def _require_plain(template: nodes.Template) -> None:
    """Raise ValueError for a template that could run long or take much memory."""
    for node in template.find_all(nodes.Node):
        named = type(node).__name__
        if not isinstance(node, PLAIN):
            raise ValueError(f"it has a {named}")
        if isinstance(node, nodes.Filter) and node.name not in FILTERS:
            raise ValueError(f"it has the filter {node.name}")
        if isinstance(node, nodes.For) and (node.recursive or any(node.find_all(nodes.For))):
            raise ValueError("it has a loop within a loop")
        if isinstance(node, nodes.Assign) and not all(
            isinstance(each, ASSIGNED) for each in (node.node, *node.node.find_all(nodes.Node))
        ):
            raise ValueError("it gives a name to a text that it makes")


class YesNo(nn.Module):
    """A causal language model whose score of a pair is the logit of one token behind it, less that of another."""

    def __init__(self, net: Any, yes: int, no: int | None) -> None:
        super().__init__()
        self.net, self.tokens = net, [yes] if no is None else [yes, no]

    def forward(self, packed: TokenBatch) -> Tensor:
        """The scores of a batch before the activation, [N, 1]. Padding stands behind the real tokens, which do not see it."""
        state_NLH = self.net.base_model(input_ids=packed.ids_BL, attention_mask=packed.mask_BL.long()).last_hidden_state
        last_N = packed.lengths_B - 1
        state_NH = state_NLH[torch.arange(len(packed), device=last_N.device), last_N]
        head = self.net.get_output_embeddings()
        logits = F.linear(state_NH, head.weight[self.tokens], None if head.bias is None else head.bias[self.tokens])
        return logits[:, :1] - logits[:, 1:].sum(1, keepdim=True)
