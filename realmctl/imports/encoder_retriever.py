"""Import encoders of other projects, a folder or two, as a retriever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from realmctl.artifacts import Artifact, Origin, Writer
from realmctl.errors import ConfigError, InputError, MismatchError
from realmctl.imports.encoder_folder import EncoderFolder, OpenedEncoder, has_routes, open_encoder, require_sides
from realmctl.imports.imported import imported_origin, make_imported
from realmctl.imports.model_folder import tokenizer_files
from realmctl.log import say, warn
from realmctl.models.families.known import family_of, positions_of
from realmctl.models.retriever import Retriever
from realmctl.models.retriever_settings import Pooling
from realmctl.models.towers.layout import MAX_PREFIX, BlockForm, InputLayout, Prefix
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.tokens.tokenizer_folder import cuts_the_beginning, rebuilt_parts

BLOCK_LENGTH = 288
"""Tokens of a block, as `chunk` cuts them by default."""
MAX_LISTED = 400
"""Characters of a folder's prompts in a message."""


@dataclass(frozen=True, kw_only=True)
class EncoderSettings:
    """How to use an encoder as a retriever. None stands for what its folder says.

    pooling: of a plain encoder. normalize: whether vectors get length 1. truncate_dim: how many numbers of a vector are used. scale: factor of the inner products, by default 1.
    query_prefix, block_prefix: text before each input. block_form: by default separated for DPR, joined for others.
    block_length: tokens of a block that are read, by default 288 or what the encoder can read.
    """

    pooling: Pooling | None = None
    normalize: bool | None = None
    scale: float | None = None
    query_prefix: str | None = None
    block_prefix: str | None = None
    block_form: BlockForm | None = None
    block_length: int | None = None
    truncate_dim: int | None = None

    def __post_init__(self) -> None:
        """20 and 20.0 are one scale, so they make one artifact."""
        if self.scale is not None:
            object.__setattr__(self, "scale", float(self.scale))

    def given(self) -> list[str]:
        """Return the names of the settings that were given."""
        return [name for name, value in asdict(self).items() if value is not None]


@dataclass(frozen=True)
class EncoderImport:
    """An encoder as a retriever.

    sources, settings: the folders that were read and how it is used, which are its recipe. flat: its scores are cosines.
    """

    retriever: Retriever
    words: Tokenizer
    sources: Mapping[str, Path | None]
    settings: Mapping[str, object]
    flat: bool

    def origin(self) -> Origin:
        """Return what the artifact is made from."""
        return imported_origin("retriever", self.sources, self.settings)

    def write(self, out: Writer) -> Mapping[str, object]:
        """Write the files of the artifact, and return its metrics."""
        if self.flat:
            warn(
                "these vectors have length 1, so p(z|x) is a softmax over cosines and almost flat. Before training with it, "
                "import with --scale, the inverse of the encoder's temperature, such as 20"
            )
        self.retriever.save(out.path)
        self.words.save(out.path / "tokenizer")
        return {
            "wordpieces": len(self.words),
            "width": self.retriever.projection,
            "towers": self.retriever.towers,
        }


def import_encoder(
    query_folder: Path, block_folder: Path | None, tokenizer: Path | None, settings: EncoderSettings, out: Path
) -> Artifact:
    """Import an encoder as a retriever, in the series `out`. The other arguments and errors are those of `read_encoder`."""
    found = read_encoder(query_folder, block_folder, tokenizer, settings)
    made = make_imported(out, "retriever", found.write, sources=found.sources, settings=found.settings)
    say(f"import: width {made.metrics['width']}, wordpieces {made.metrics['wordpieces']}")
    return made


def read_encoder(
    query_folder: Path, block_folder: Path | None, tokenizer: Path | None, settings: EncoderSettings
) -> EncoderImport:
    """Read a sentence-transformers, Contriever, DPR or plain encoder as a retriever.

    Args:
        query_folder: Folder of the encoder, or of the query encoder of two.
        block_folder: Folder of the block encoder of two.
        tokenizer: Folder of the tokenizer. None for that of the encoder.
        settings: How to use it.

    Raises:
        ConfigError: A setting cannot work or does not apply.
        InputError: A folder is damaged, or of a kind of model that is not accepted.
        MismatchError: The tokenizer does not fit, or the two encoders have different ones.
    """
    scale = 1.0 if settings.scale is None else settings.scale
    if not 1e-6 <= scale <= 1e6:
        raise ConfigError(
            f"--scale {scale:g} must be from 1e-06 to 1e+06. It is the inverse of a temperature, such as 20."
        )
    how = settings.pooling, settings.normalize, scale, settings.truncate_dim
    query = open_encoder(query_folder, *how)
    other = open_encoder(block_folder, *how, route="document") if block_folder else None
    if block_folder is None and has_routes(query_folder):
        other = open_encoder(query_folder, *how, route="document")
    require_sides(query, other)
    words = _wordpieces(query_folder, query, block_folder, other, tokenizer)
    retriever = _retriever(query, other or query, words, settings)
    sources = {"encoder": query_folder, "block_encoder": block_folder, "tokenizer": tokenizer, "base": query.base}
    steps = query.tower.steps
    flat = scale == 1 and bool(steps) and steps[-1].kind == "normalize"
    return EncoderImport(retriever, words, sources, {**asdict(settings), "scale": scale}, flat)


def _retriever(query: OpenedEncoder, block: OpenedEncoder, words: Tokenizer, settings: EncoderSettings) -> Retriever:
    if settings.query_prefix is None and settings.block_prefix is None:
        _say_prompts(query.said, block.said)
    layout = InputLayout(
        settings.block_form or block.said.form,
        _prefix(words, settings.query_prefix, query.said.query_prompt, "--query-prefix"),
        _prefix(words, settings.block_prefix, block.said.block_prompt, "--block-prefix"),
        query.said.pools_prompt,
    )
    model = block.tower.bert
    if layout.blocks == "pair" and family_of(model).segments(model.config) < 2:
        raise ConfigError(f"--block-form pair: {block.said.folder} knows one segment. Use another form.")
    if layout.blocks != "joined" and not words.frame.between:
        raise ConfigError(
            f"--block-form {layout.blocks}: the tokenizer of {block.said.folder} puts nothing between two texts. Use --block-form joined."
        )
    length = settings.block_length or min(block.max_length, BLOCK_LENGTH + len(layout.block_prefix.ids))
    if not layout.extra_tokens(words.frame) < length <= positions_of(model):
        whose = "--block-length" if settings.block_length else f"The longest input of {block.said.folder},"
        raise ConfigError(
            f"{whose} {length} must be above the {layout.extra_tokens(words.frame)} special tokens and wordpieces of the prefix, and at "
            f"most the {positions_of(model)} positions of the encoder."
        )
    return Retriever(
        query.tower,
        block.tower,
        query_length=query.max_length,
        block_length=length,
        pooling=query.tower.pooling,
        layout=layout,
    ).eval()


def _say_prompts(query: EncoderFolder, block: EncoderFolder) -> None:
    """Say which prompts of a folder are used, and which are not."""
    if block.block_prompt_name not in ("", "document"):
        say(
            f"{block.folder} names its prompt for documents {block.block_prompt_name}, and it stands before blocks here: {block.block_prompt!r}. "
            "sentence-transformers 6.2 puts nothing there, though its documentation says so; --block-prefix '' does the same here."
        )
    if query.other_prompts and not (query.query_prompt or block.block_prompt):
        listed = ", ".join(f"{name} {text!r}" for name, text in query.other_prompts.items())[:MAX_LISTED]
        say(
            f"{query.folder} has prompts, and none is called query or document, so none is used, as in sentence-transformers: {listed}. "
            "Where two of them are for queries and for documents, give their texts by --query-prefix and --block-prefix."
        )
    elif query.other_prompts:
        say(
            f"{query.folder} has prompts for other tasks too: {', '.join(query.other_prompts)[:MAX_LISTED]}. --query-prefix and --block-prefix give "
            "the text of one of them."
        )


def _wordpieces(
    query_folder: Path,
    query: OpenedEncoder,
    block_folder: Path | None,
    block: OpenedEncoder | None,
    tokenizer: Path | None,
) -> Tokenizer:
    """Return the tokenizer. Raises MismatchError when it does not fit an encoder, or the two have different ones."""
    folder = tokenizer_files(tokenizer or query.said.folder)[0].parent
    words = Tokenizer.load(folder, framed=family_of(query.tower.bert).framed)
    rows = min(int(each.tower.bert.config.vocab_size) for each in (query, block or query))
    if words.rows > rows:
        raise MismatchError(
            f"The tokenizer in {folder} has {len(words)} wordpieces, and the encoder {query_folder} has {rows}. Name the "
            "tokenizer that it was trained with: --tokenizer FOLDER."
        )
    if cuts_the_beginning(folder):
        warn(
            f"the tokenizer in {folder} cuts a text that is too long at its beginning (truncation_side: left), and texts are cut at their end "
            "here: the vectors of longer queries and blocks are others than with sentence-transformers"
        )
    if parts := rebuilt_parts(folder):
        warn(
            f"{folder}/tokenizer.json has {', '.join(parts)} of its own, and is obeyed. transformers 5 replaces them by BERT's, since tokenizer_config.json names "
            "BertTokenizer, so its vectors are others. With tokenizer_class PreTrainedTokenizerFast it obeys the file too"
        )
    if query.said.lowercase and not words.lowercase:
        raise InputError(
            f"{query_folder} puts text in lower case before its tokenizer, which distinguishes case. This cannot be "
            "imported. Save the encoder with a tokenizer that does it (do_lower_case)."
        )
    if block and tokenizer is None:
        of_blocks = tokenizer_files(block.said.folder)[0].parent
        other = Tokenizer.load(of_blocks, framed=family_of(block.tower.bert).framed)
        if other.identity != words.identity or other.frame != words.frame:
            raise MismatchError(
                f"{folder} and {of_blocks} have different tokenizers, or put other special tokens around a text. Queries and blocks are cut by one "
                "tokenizer here: name two encoders that were trained together, with one tokenizer."
            )
    return words


def _prefix(words: Tokenizer, given: str | None, prompt: str, flag: str) -> Prefix:
    """Return the prefix that was given, or else the prompt of the folder, with the wordpieces that it has alone."""
    text = prompt if given is None else given
    if given and given[-1].isalnum():
        raise ConfigError(
            f"{flag} {text!r} ends in a letter or digit, so it would run into the text. End it in a space."
        )
    ids = tuple(words.ids(text.rstrip()).tolist())
    if len(ids) > MAX_PREFIX:
        raise (ConfigError if given else InputError)(
            f"{flag if given else 'The prompt of the folder'} has {len(ids)} wordpieces, and at most {MAX_PREFIX} can be used. "
            f"Give a shorter one by {flag}."
        )
    return Prefix(text, ids)
