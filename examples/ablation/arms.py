"""The arms of the ablation: their names in `examples/ablation.yaml`, what differs, and the paper's results."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """A row of the paper's table 2, in per cent: Natural Questions, dev split."""

    em: float
    recall_5: float  # before fine-tuning


@dataclass(frozen=True)
class Arm:
    """One row of the table.

    Its scores are the output `KEY-scores`; its recall before fine-tuning is in the output `before`.
    """

    key: str
    label: str
    differs: str
    paper: Paper | None = None
    untuned: str = ""  # the arm with the same retrieval before fine-tuning, if that is another arm

    @property
    def scores(self) -> str:
        """Name of the output with exact match and recall after fine-tuning."""
        return f"{self.key}-scores"

    @property
    def before(self) -> str:
        """Name of the output with the recall before fine-tuning."""
        return f"{self.untuned or self.key}-zero-shot"


REALM = Arm("realm", "REALM", "nothing", Paper(38.2, 38.5))
ORQA = Arm("orqa", "ORQA", "no pre-training; ICT as long as ICT and REALM together", Paper(31.3, 13.9))
UNIFORM = Arm("random-uniform", "random uniform masks", "hides random wordpieces", Paper(32.3, 24.2))
SPAN = Arm("random-span", "random span masks", "hides random spans", Paper(35.3, 26.1))
STALE = (
    Arm("refresh-10x", "10x stale index", "index refreshed a tenth as often"),
    Arm("refresh-30x", "30x stale index", "index refreshed a thirtieth as often", Paper(28.7, 15.1)),
    Arm("refresh-never", "index never refreshed", "the starting index throughout"),
)
NEVER = STALE[-1]
MIXED = Arm(
    "off-corpus", "half the sentences on strangers",
    "no block helps with half of the sentences; its ICT has the null document in it (`--null-share`)",
)  # fmt: skip
NO_NULL = Arm(
    "no-null", "the same, no null document", "such sentences, the same start, and every candidate is a retrieved block"
)
JOINT = Arm("realm-joint", "REALM, tuned jointly", "fine-tuning trains the retriever too", untuned="realm")
ORQA_JOINT = Arm("orqa-joint", "ORQA, tuned jointly", "ORQA, and fine-tuning trains the retriever too", untuned="orqa")
SAME = Arm("same-corpus", "X = Z", "sentences from the knowledge corpus, own block excluded")
SAME_OWN = Arm("same-corpus-own", "X = Z, own block allowed", "the same without the exclusion")

ARMS = (
    REALM,
    ORQA,
    Arm("orqa-short", "ORQA, short ICT", "no pre-training: what REALM starts from", untuned="start"),
    JOINT,
    ORQA_JOINT,
    Arm("realm-retriever", "REALM retriever, plain reader", "reader not pre-trained", Paper(37.4, 38.5), "realm"),
    Arm("realm-reader", "plain retriever, REALM reader", "retriever not pre-trained", Paper(35.3, 13.9), "start"),
    UNIFORM,
    SPAN,
    *STALE,
    MIXED,
    NO_NULL,
    SAME,
    SAME_OWN,
    Arm("bm25", "BM25", "BM25 with a learned scale for a retriever, plain reader"),
    Arm("closed-book", "closed book", "no retrieval, REALM's reader"),
)

MEASURED_ON_HELD_OUT = {
    "start-utility": "start",
    "realm-utility": REALM.label,
    "random-uniform-utility": UNIFORM.label,
    "refresh-never-utility": NEVER.label,
    "off-corpus-utility": MIXED.label,
}
"""Outputs with the retrieval utility on sentences that no stage trained on, and the models they belong to."""
MEASURED_ON_STRANGERS = {"off-corpus-strangers": MIXED.label}
"""The same on sentences about people who are in no block."""
