"""What can be said of whom: the relations of each kind of entity, and the wordings of each relation.

A relation has three sets of wordings that share no sentence: one for the knowledge corpus, one for the
sentence corpus and one for questions. Matching words is therefore not enough to find the right document.

Placeholders: {V} is the value. The subject is {S} ("Anna Velman", "she"), {O} ("Anna Velman", "her") or
{P} ("Anna Velman's", "her"). A wording of the sentence corpus is a predicate: its subject stands before it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Relation:
    """Who has the relation, in which section of the subject it is told, what its values are, its wordings."""

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
        "birth city", "person", 0, "city",
        ("{S} was born in the city of {V}.", "{P} cradle stood in {V}.", "A midwife of {V} delivered {O}."),
        ("came from {V}", "was a native of {V}", "had family roots in {V}"),
        ("Where was {S} born?", "What is the birthplace of {S}?", "Which city is {S} from?"),
    ),
    Relation(
        "birth date", "person", 0, "date",
        ("{P} birth fell in {V}.", "The parish book first names {O} in {V}.", "{S} was baptised in {V}."),
        ("was born in {V}", "first drew breath in {V}", "entered the world in {V}"),
        ("When was {S} born?", "What is the birth date of {S}?", "When did the life of {S} begin?"),
        years=(1860, 1909),
    ),
    Relation(
        "school", "person", 0, "school",
        ("{S} attended {V}.", "{P} school was {V}.", "{S} left {V} with a diploma."),
        ("studied at {V}", "was a pupil of {V}", "graduated from {V}"),
        ("Where was {S} educated?", "Which school did {S} go to?", "Where did {S} study?"),
    ),
    Relation(
        "teacher", "person", 0, "person",
        ("{V} was {P} first teacher.", "{S} learned much from {V}.", "A stern master, {V}, guided {O}."),
        ("was taught by {V}", "took instruction from {V}", "sat at the feet of {V}"),
        ("Who taught {S}?", "Who was the teacher of {S}?", "Who trained {S}?"),
    ),
    Relation(
        "employer", "person", 1, "company",
        ("{V} employed {O} for decades.", "{S} held a post at {V}.", "{S} rose through the ranks of {V}."),
        ("worked for {V}", "was on the staff of {V}", "drew a salary from {V}"),
        ("Who employed {S}?", "Which company did {S} work for?", "Where did {S} have a job?"),
    ),
    Relation(
        "award", "person", 1, "award",
        ("{S} was given the {V}.", "The jury of the {V} chose {O}.", "The {V} crowned {P} efforts."),
        ("won the {V}", "was honoured with the {V}", "accepted the {V}"),
        ("Which prize did {S} win?", "What honour was {S} given?", "Which award went to {S}?"),
    ),
    Relation(
        "newspaper", "person", 1, "newspaper",
        ("The newspaper {V} printed {P} essays.", "{S} had a column in the {V}.", "The {V} made {P} name."),
        ("published in the {V}", "wrote for the {V}", "sent reports to the {V}"),
        ("Which newspaper did {S} write for?", "Which paper did {S} publish in?", "Where did {S} publish?"),
    ),
    Relation(
        "residence", "person", 2, "city",
        ("{S} settled in {V}.", "{P} last home stands in {V}.", "{S} bought a cottage near {V}."),
        ("moved to {V}", "made a home in {V}", "lived in {V}"),
        ("Where did {S} live?", "Which city did {S} move to?", "Where was the home of {S}?"),
    ),
    Relation(
        "club", "person", 2, "club",
        ("{S} presided over {V}.", "{V} was the club of {P} old age.", "{P} evenings belonged to {V}."),
        ("was a member of {V}", "joined {V}", "paid dues to {V}"),
        ("Which club did {S} join?", "Of which society was {S} a member?", "What group did {S} belong to?"),
    ),
    Relation(
        "biographer", "person", 2, "person",
        ("{V} told {P} life story.", "A book about {O} came from {V}.", "{V} edited {P} letters."),
        ("was portrayed by {V}", "inspired a book by {V}", "was described at length by {V}"),
        ("Who wrote a book about {S}?", "Who is the biographer of {S}?", "Who made {S} famous?"),
    ),
    Relation(
        "death date", "person", 2, "date",
        ("{S} died in {V}.", "The death of {O} came in {V}.", "{P} funeral was held in {V}."),
        ("passed away in {V}", "was buried in {V}", "was mourned in {V}"),
        ("When did {S} die?", "What is the date of death of {S}?", "When did the life of {S} end?"),
        years=(1935, 1984),
    ),
    Relation(
        "seat", "company", 0, "city",
        ("{S} has offices in {V}.", "The directors of {O} meet in {V}.", "{P} towers rise over {V}."),
        ("was based in {V}", "kept its headquarters in {V}", "gave its orders from {V}"),
        ("Where is {S} based?", "Where are the headquarters of {S}?", "In which city is the seat of {S}?"),
    ),
    Relation(
        "founder", "company", 0, "person",
        ("{V} started {O} with borrowed money.", "{S} was set up by {V}.", "{P} first director was {V}."),
        ("was founded by {V}", "grew from an idea of {V}", "was the life work of {V}"),
        ("Who founded {S}?", "Who created {S}?", "Who is the founder of {S}?"),
    ),
    Relation(
        "founding date", "company", 0, "date",
        ("{S} opened its doors in {V}.", "{P} charter dates from {V}.", "{S} has traded since {V}."),
        ("was launched in {V}", "sold its first goods in {V}", "came into being in {V}"),
        ("When was {S} founded?", "When did {S} start?", "What is the founding date of {S}?"),
        years=(1880, 1979),
    ),
    Relation(
        "rival", "company", 0, "company",
        ("{S} loses customers to {V}.", "{P} fiercest opponent is {V}.", "{S} shares its market with {V}."),
        ("fought a price war with {V}", "was challenged by {V}", "went to court against {V}"),
        ("Who is the rival of {S}?", "Which company competes with {S}?", "What firm does {S} fight?"),
    ),
    Relation(
        "country", "city", 0, "country",
        ("{S} lies in {V}.", "The maps of {V} show {O} in red.", "{P} people pay taxes to {V}."),
        ("was part of {V}", "flew the flag of {V}", "was governed by {V}"),
        ("In which country is {S}?", "Which country does {S} belong to?", "What nation is {S} in?"),
    ),
    Relation(
        "river", "city", 0, "river",
        ("The {V} flows past {O}.", "{S} was built on the banks of the {V}.", "{P} bridges span the {V}."),
        ("was flooded by the {V}", "took its water from the {V}", "grew rich on the {V}"),
        ("Which river crosses {S}?", "On which river is {S}?", "What is the river of {S}?"),
    ),
    Relation(
        "twin", "city", 0, "city",
        ("{S} is twinned with {V}.", "{P} sister town is {V}.", "Choirs from {V} come to {O}."),
        ("signed a treaty with {V}", "exchanged pupils with {V}", "was partnered with {V}"),
        ("Which city is the twin of {S}?", "What is the partner city of {S}?", "Who are the friends of {S}?"),
    ),
    Relation(
        "capital", "country", 0, "city",
        ("{P} parliament sits in {V}.", "{S} is governed from {V}.", "The mint of {O} is in {V}."),
        ("had its capital at {V}", "sent its ministers to {V}", "had its court in {V}"),
        ("What is the capital of {S}?", "Which city is the capital of {S}?", "From where is {S} ruled?"),
    ),
    Relation(
        "currency", "country", 0, "currency",
        ("{S} mints the {V}.", "{P} shops take the {V}.", "Wages across {O} are paid in the {V}."),
        ("devalued the {V}", "printed the {V}", "paid its debts in the {V}"),
        ("What is the currency of {S}?", "What money is used in {S}?", "How do people pay in {S}?"),
    ),
    Relation(
        "peak", "country", 0, "peak",
        ("{P} highest point is {V}.", "Climbers visit {O} for {V}.", "{S} is crowned by {V}."),
        ("closed the trail up {V}", "built a lodge below {V}", "guarded the pass at {V}"),
        ("What is the tallest mountain in {S}?", "Which summit is in {S}?", "What is the top of {S}?"),
    ),
)  # fmt: skip

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
