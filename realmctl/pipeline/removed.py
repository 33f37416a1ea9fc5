"""Options and commands that are gone, with what to do instead: for whoever comes with an older command line, pipeline file or script."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from realmctl.errors import ConfigError

CONTRAST = ("ict-init", "spider-init", "dpr-finetune")
MEASURED = ("ict-init", "pretrain")
UNMEASURED = ("spider-init", "dpr-finetune", "condenser-init", "retromae-init")
OUT = "Leave it out."

_OPTIONS: Collection[tuple[Iterable[str], Iterable[str], str]] = (
    (CONTRAST, ("--queue", "--momentum"), f"a momentum queue brought nothing (docs/results/adapt.md). {OUT}"),
    (
        ("ict-init",),
        ("--pairs", "--delete-rate"),
        f"pairs of crops, and words that are deleted, brought less than a sentence and its block (docs/results/adapt.md). {OUT}",
    ),
    (
        ("ict-init",),
        ("--hard-negatives",),
        f"hard negatives by BM25 showed no gain without labels (docs/results/adapt.md); dpr-finetune has them. {OUT}",
    ),
    (
        UNMEASURED,
        ("--minutes", "--cloze-recall", "--cloze-every", "--cloze-titles", "--keep", "--cloze-wordpieces"),
        "say by --steps how long training goes on, and measure what it gained with eval-cloze --start.",
    ),
    (MEASURED, ("--cloze-wordpieces",), "eval-cloze --query-wordpieces measures by short queries."),
    (("pretrain",), ("--likelihood",), f"it is the mean over the hidden tokens, as in Atlas. {OUT}"),
    (("finetune",), ("--answer-test",), f"a block holds an answer as raw text, as in the official code. {OUT}"),
    (
        ("finetune",),
        ("--hard-em-tau", "--objective hard-em", "--preset hard-em"),
        f"learning from the likeliest mention alone was not shown to help (docs/results/starts.md). {OUT}",
    ),
    (("mlm-init",), ("--stop-at-accuracy",), "say by --steps how long training goes on."),
    (
        ("pretrain",),
        ("--refresh-drift", "--refresh-every auto"),
        "a refresh by drift was not shown to beat a fixed period (docs/refresh.md). Give --refresh-every a number of steps.",
    ),
    (
        ("pretrain",),
        ("--ict-weight", "--ict-batch-size", "--distill-start"),
        f"a second loss beside REALM's was not shown to help (docs/results/adapt.md). {OUT}",
    ),
    (("pretrain",), ("--reader frozen",), "write --freeze-reader."),
    (
        ("pretrain",),
        ("--reader trained",),
        "a reader is trained unless --freeze-reader is given; with --reader-lm write --train-reader.",
    ),
    (
        ("pretrain",),
        ("--when-stale",),
        f"training waits for a fresher index. --max-index-age says from which age. {OUT}",
    ),
    (("condenser-init",), ("--late-mlm",), f"the last layer always predicts too, as in the paper. {OUT}"),
    (("retromae-init",), ("--decoder-mask-rate",), f"it is 0.5, as in the paper. {OUT}"),
    (("spider-init",), ("--keep-rate",), f"it is 0.5, as in the paper. {OUT}"),
    (("rank",), ("--rrf-k",), f"it is 60, as in the paper. --bm25-weight weighs the two rankings. {OUT}"),
    (("mine-negatives",), ("--margin",), "write --relative-margin, which needs no scale."),
    (("plan",), ("--calibrate",), f"every plan is measured now. {OUT}"),
    (
        ("plan",),
        ("--device", "--devices", "--as-of-paper", "--price"),
        "the stages are measured on this machine now. Run plan on the machine that you ask about.",
    ),
    (
        ("plan",),
        ("--corpus", "--bert", "--steps", "--batch-size", "--candidates", "--refresh-every"),
        "write the value into the pipeline file, as a variable that --var replaces.",
    ),
    (("plan",), ("--rehearse",), "the rehearsal is a test of realmctl now: python -m pytest -m slow tests/processes."),
    (
        ("eval-em",),
        ("--qrels",),
        "eval-em scores answers. Rank with rank, and judge the ranking with eval-run --qrels.",
    ),
)
OPTIONS: Mapping[tuple[str, str], str] = {
    (command, option): advice for commands, options, advice in _OPTIONS for command in commands for option in options
}
"""{(command, option): what to do}. An option with a value, such as `--reader frozen`, is gone with this value alone."""
COMMANDS: Mapping[str, str] = {
    "lm-ask": "write ask --reader-lm.",
}
"""{command: what to do}."""


def advice(command: str, option: str = "") -> str | None:
    """Return what to do in place of an option that is gone, or of a command; None for what never was."""
    if option:
        told = OPTIONS.get((command, option))
        return told and f"{command}: `{option}` is gone: {told}"
    told = COMMANDS.get(command)
    return told and f"`{command}` is gone: {told}"


def refuse(command: str, values: Mapping[str, object]) -> None:
    """Say what to do in place of the first field, or value of a field, that is gone. values: {field: value}, as a script gives them.

    Raises ConfigError.
    """
    for name, value in values.items():
        flag = "--" + name.replace("_", "-")
        if told := advice(command, flag) or advice(command, f"{flag} {value}"):
            raise ConfigError(told)
