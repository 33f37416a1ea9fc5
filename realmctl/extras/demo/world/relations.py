"""The relations of each kind of entity, and the wordings of each relation.

A relation has three sets of wordings that share no sentence: one for the knowledge corpus, one for the
sentence corpus and one for questions. Questions use the words of the sentence corpus but not of the knowledge corpus.
So matching words does not find the right document, and training on the sentences helps with the questions.

Placeholders: {V} is the value. The subject is {S} ("Anna Velman", "she"), {O} ("Anna Velman", "her") or
{P} ("Anna Velman's", "her"). A wording of the sentence corpus is a predicate without its subject.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Relation:
    """A relation: the kind of entity that has it, the section that states it, its kind of values, and its wordings."""

    name: str
    subject: str
    section: int
    value: str  # a kind of name, "person" or "date"
    knowledge: tuple[str, ...]
    sentences: tuple[str, ...]
    questions: tuple[str, ...]
    years: tuple[int, int] = (0, 0)  # first and last year of a date


RELATIONS: tuple[Relation, ...] = (
    Relation(
        "birth city",
        "person",
        0,
        "city",
        ("{S} was born in the city of {V}.", "{P} cradle stood in {V}.", "A midwife of {V} delivered {O}."),
        ("came from {V}", "was a native of {V}", "had family roots in {V}"),
        ("Which city was {S} a native of?", "Where were the family roots of {S}?", "What city did {S} come from?"),
    ),
    Relation(
        "birth date",
        "person",
        0,
        "date",
        ("{P} birth fell in {V}.", "The parish book first names {O} in {V}.", "{S} was baptised in {V}."),
        ("was born in {V}", "first drew breath in {V}", "entered the world in {V}"),
        ("When was {S} born?", "When did {S} draw a first breath?", "When had {S} entered the world?"),
        years=(1860, 1909),
    ),
    Relation(
        "school",
        "person",
        0,
        "school",
        ("{S} attended {V}.", "{P} school was {V}.", "{S} left {V} with a diploma."),
        ("studied at {V}", "was a pupil of {V}", "graduated from {V}"),
        ("Where had {S} studied?", "Which school was {S} a pupil of?", "Which school had {S} graduated from?"),
    ),
    Relation(
        "teacher",
        "person",
        0,
        "person",
        ("{V} was {P} first teacher.", "{S} learned much from {V}.", "A stern master, {V}, guided {O}."),
        ("was taught by {V}", "took instruction from {V}", "sat at the feet of {V}"),
        ("By whom was {S} taught?", "Who gave {S} instruction?", "At whose feet had {S} sat?"),
    ),
    Relation(
        "employer",
        "person",
        1,
        "company",
        ("{V} employed {O} for decades.", "{S} held a post at {V}.", "{S} rose through the ranks of {V}."),
        ("worked for {V}", "was on the staff of {V}", "drew a salary from {V}"),
        ("Which company had {S} worked for?", "On whose staff was {S}?", "Who paid the salary of {S}?"),
    ),
    Relation(
        "award",
        "person",
        1,
        "award",
        ("{S} was given the {V}.", "The jury of the {V} chose {O}.", "The {V} crowned {P} efforts."),
        ("won the {V}", "was honoured with the {V}", "accepted the {V}"),
        ("Which prize was won by {S}?", "With what was {S} honoured?", "Which award had {S} accepted?"),
    ),
    Relation(
        "newspaper",
        "person",
        1,
        "newspaper",
        ("The newspaper {V} printed {P} essays.", "{S} had a column in the {V}.", "The {V} made {P} name."),
        ("published in the {V}", "wrote for the {V}", "sent reports to the {V}"),
        (
            "Which newspaper had {S} published in?",
            "What paper had {S} written for?",
            "Where were the reports of {S} sent?",
        ),
    ),
    Relation(
        "residence",
        "person",
        2,
        "city",
        ("{S} settled in {V}.", "{P} last home stands in {V}.", "{S} bought a cottage near {V}."),
        ("moved to {V}", "made a home in {V}", "lived in {V}"),
        ("Where had {S} moved to?", "Where was the home of {S}?", "Which city had {S} lived in?"),
    ),
    Relation(
        "club",
        "person",
        2,
        "club",
        ("{S} presided over {V}.", "{V} was the club of {P} old age.", "{P} evenings belonged to {V}."),
        ("was a member of {V}", "joined {V}", "paid dues to {V}"),
        ("Of which society was {S} a member?", "Which club was joined by {S}?", "To which club had {S} paid dues?"),
    ),
    Relation(
        "biographer",
        "person",
        2,
        "person",
        ("{V} told {P} life story.", "A book about {O} came from {V}.", "{V} edited {P} letters."),
        ("was portrayed by {V}", "inspired a book by {V}", "was described at length by {V}"),
        ("By whom was {S} portrayed?", "Whose book was inspired by {S}?", "Who described {S} at length?"),
    ),
    Relation(
        "death date",
        "person",
        2,
        "date",
        ("{S} died in {V}.", "The death of {O} came in {V}.", "{P} funeral was held in {V}."),
        ("passed away in {V}", "was buried in {V}", "was mourned in {V}"),
        ("When had {S} passed away?", "When was {S} buried?", "When was {S} mourned?"),
        years=(1935, 1984),
    ),
    Relation(
        "seat",
        "company",
        0,
        "city",
        ("{S} has offices in {V}.", "The directors of {O} meet in {V}.", "{P} towers rise over {V}."),
        ("was based in {V}", "kept its headquarters in {V}", "gave its orders from {V}"),
        ("Where was {S} based?", "Where are the headquarters of {S}?", "From which city came the orders of {S}?"),
    ),
    Relation(
        "founder",
        "company",
        0,
        "person",
        ("{V} started {O} with borrowed money.", "{S} was set up by {V}.", "{P} first director was {V}."),
        ("was founded by {V}", "grew from an idea of {V}", "was the life work of {V}"),
        ("Who founded {S}?", "Whose idea was {S}?", "Whose life work was {S}?"),
    ),
    Relation(
        "founding date",
        "company",
        0,
        "date",
        ("{S} opened its doors in {V}.", "{P} charter dates from {V}.", "{S} has traded since {V}."),
        ("was launched in {V}", "sold its first goods in {V}", "came into being in {V}"),
        ("When was {S} launched?", "When were the first goods of {S} sold?", "When did {S} come into being?"),
        years=(1880, 1979),
    ),
    Relation(
        "rival",
        "company",
        0,
        "company",
        ("{S} loses customers to {V}.", "{P} fiercest opponent is {V}.", "{S} shares its market with {V}."),
        ("fought a price war with {V}", "was challenged by {V}", "went to court against {V}"),
        ("Who fought a price war with {S}?", "Which company challenged {S}?", "Who went to court against {S}?"),
    ),
    Relation(
        "country",
        "city",
        0,
        "country",
        ("{S} lies in {V}.", "The maps of {V} show {O} in red.", "{P} people pay taxes to {V}."),
        ("was part of {V}", "flew the flag of {V}", "was governed by {V}"),
        ("Which country is {S} part of?", "Whose flag flew over {S}?", "Which country governed {S}?"),
    ),
    Relation(
        "river",
        "city",
        0,
        "river",
        ("The {V} flows past {O}.", "{S} was built on the banks of the {V}.", "{P} bridges span the {V}."),
        ("was flooded by the {V}", "took its water from the {V}", "grew rich on the {V}"),
        ("Which river flooded {S}?", "Where does {S} take its water from?", "Which river made {S} rich?"),
    ),
    Relation(
        "twin",
        "city",
        0,
        "city",
        ("{S} is twinned with {V}.", "{P} sister town is {V}.", "Choirs from {V} come to {O}."),
        ("signed a treaty with {V}", "exchanged pupils with {V}", "was partnered with {V}"),
        (
            "With which city had {S} signed a treaty?",
            "With whom had {S} exchanged pupils?",
            "Which city was {S} partnered with?",
        ),
    ),
    Relation(
        "capital",
        "country",
        0,
        "city",
        ("{P} parliament sits in {V}.", "{S} is governed from {V}.", "The mint of {O} is in {V}."),
        ("had its capital at {V}", "sent its ministers to {V}", "had its court in {V}"),
        ("What is the capital of {S}?", "Where were the ministers of {S} sent?", "Where is the court of {S}?"),
    ),
    Relation(
        "currency",
        "country",
        0,
        "currency",
        ("{S} mints the {V}.", "{P} shops take the {V}.", "Wages across {O} are paid in the {V}."),
        ("devalued the {V}", "printed the {V}", "paid its debts in the {V}"),
        ("What money was devalued in {S}?", "What money was printed in {S}?", "In what had {S} paid its debts?"),
    ),
    Relation(
        "peak",
        "country",
        0,
        "peak",
        ("{P} highest point is {V}.", "Climbers visit {O} for {V}.", "{S} is crowned by {V}."),
        ("closed the trail up {V}", "built a lodge below {V}", "guarded the pass at {V}"),
        (
            "Up which mountain went the trail of {S}?",
            "Below which summit is the lodge of {S}?",
            "At which peak is the pass of {S}?",
        ),
    ),
)

FILLERS: tuple[str, ...] = (
    "Little else is known of those years.",
    "Some of the records were lost in a fire.",
    "The sources do not agree on every detail.",
    "A small museum keeps a few of the papers.",
    "Later writers added many legends.",
    "The weather that year was unusually cold.",
    "Much of this was forgotten for a long time.",
    "An old song mentions the story.",
    "Several photographs have survived.",
    "Visitors still ask about it today.",
)

OPENERS: tuple[str, ...] = (
    "It is said that ",
    "In those days ",
    "As the papers wrote, ",
    "Nobody doubts that ",
    "According to a letter in the archive, ",
    "Few remember that ",
)
