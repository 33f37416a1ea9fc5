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

    Its scores are the output `KEY-scores`.
    """

    key: str
    label: str
    differs: str
    tunes: str = "pre-training"  # what the rate of the grid is the rate of
    rate_of: str = ""  # the arm whose best rate it runs with, if it is not tuned itself
    utilities: tuple[tuple[str, str], ...] = ()  # further outputs of `eval-utility`: (sentences, output)
    paper: Paper | None = None

    @property
    def scores(self) -> str:
        """Name of the output with exact match and recall after fine-tuning."""
        return f"{self.key}-scores"

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of all outputs that are measured."""
        return (self.scores, *(output for _, output in self.utilities))


def _strangers(share: int) -> tuple[Arm, Arm]:
    key = f"strangers-{share}"
    utilities = (("in corpus", f"{key}-utility"), ("off corpus", f"{key}-on-strangers"))
    what = f"{share} % of the sentences are about strangers: people of whom no block tells"
    return (
        Arm(key, f"{share} % strangers", f"{what}; its ICT has the null document in it", utilities=utilities),
        Arm(f"{key}-no-null", f"{share} % strangers, no null document", f"{what}; every candidate is a block"),
    )


REALM = Arm("realm", "REALM", "nothing", utilities=(("in corpus", "realm-utility"),), paper=Paper(38.2, 38.5))
ORQA = Arm(
    "orqa", "ORQA", "no pre-training; its ICT takes as long as ICT and REALM together", "ICT", paper=Paper(31.3, 13.9)
)
SHORT = Arm(
    "orqa-short",
    "ORQA, short ICT",
    "no pre-training: what REALM starts from",
    "fine-tuning",
    utilities=(("in corpus", "start-utility"),),
)
UNIFORM = Arm("random-uniform", "random uniform masks", "hides random wordpieces", paper=Paper(32.3, 24.2))
SPAN = Arm("random-span", "random span masks", "hides random spans", paper=Paper(35.3, 26.1))
STALE = (
    Arm("refresh-3x", "3x stale index", "the index is refreshed a third as often"),
    Arm("refresh-10x", "10x stale index", "the index is refreshed a tenth as often"),
    Arm("refresh-never", "index never refreshed", "the first index throughout"),
)
NEVER = STALE[-1]
STRANGERS = (_strangers(25), _strangers(50))
"""(with the null document, without it) for each share."""
JOINT = Arm("realm-joint", "REALM, tuned jointly", "fine-tuning trains the retriever too", rate_of="realm")
ORQA_JOINT = Arm(
    "orqa-joint",
    "ORQA, tuned jointly",
    "ORQA, and fine-tuning trains the retriever too",
    rate_of="orqa",
)
SAME = Arm(
    "same-corpus",
    "X = Z",
    "sentences and encyclopedia are one corpus that tells half of its facts again; trivial candidate excluded",
)
SAME_OWN = Arm("same-corpus-own", "X = Z, trivial candidate allowed", "the same without the exclusion")
BM25 = Arm(
    "bm25", "BM25", "BM25 in place of the retriever, with a learned scale; the reader is not pre-trained", "fine-tuning"
)
CLOSED_BOOK = Arm("closed-book", "closed book", "no retrieval; the reader is not pre-trained", "fine-tuning")

ARMS = (
    REALM,
    ORQA,
    UNIFORM,
    SPAN,
    *STALE,
    SHORT,
    BM25,
    CLOSED_BOOK,
    SAME,
    SAME_OWN,
    *(arm for pair in STRANGERS for arm in pair),
    Arm(
        "realm-retriever",
        "REALM retriever, plain reader",
        "reader not pre-trained",
        rate_of="realm",
        paper=Paper(37.4, 38.5),
    ),
    Arm(
        "realm-reader",
        "plain retriever, REALM reader",
        "retriever not pre-trained",
        rate_of="realm",
        paper=Paper(35.3, 13.9),
    ),
    JOINT,
    ORQA_JOINT,
)
"""All arms, in the order in which they run."""
BY_KEY = {arm.key: arm for arm in ARMS}
