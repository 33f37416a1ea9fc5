"""The size and difficulty of a world: all settings of the generator, and three named sizes."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class WorldSettings:
    """The settings of one world. All shares are between 0 and 1."""

    seed: int = 0
    persons: int = 800
    companies: int = 120
    cities: int = 120
    countries: int = 40
    first_names: int = 24  # with few names, people share them, and only the full name identifies one
    last_names: int = 140
    other_names: int = 40  # of each kind: schools, awards, newspapers, clubs, rivers, currencies, peaks
    blocks_per_person: int = 3  # 1 to 3; a smaller number puts the same facts into fewer, longer documents
    two_word_share: float = 0.25  # of names such as "Port Velford", and of dates such as "March 1912"
    full_name_share: float = 0.3  # of a document's later sentences: those with the subject's full name
    pronoun_share: float = 0.25  # of those with a pronoun; the rest have the last name or "the firm"
    filler_share: float = 0.3  # of documents with one sentence that states no fact
    restated_share: float = (
        0.0  # of the knowledge corpus's facts that a second document of it states in another wording
    )
    held_out_share: float = 0.3  # of entities that appear in the knowledge corpus only
    off_corpus_share: float = 0.0  # of the sentence corpus that is about people outside the knowledge corpus
    parallel_worlds: int = 6
    quiz_share: float = 0.04  # of the facts of parallel worlds: parallel/questions has a question about each
    train_questions: int = 4000
    dev_questions: int = 500
    test_questions: int = 1000
    seen_questions: int = 500
    evaluation_facts: int = 400  # in each of the two corpora of evaluation sentences, which no stage trains on


SIZES: dict[str, WorldSettings] = {
    "demo": WorldSettings(),
    "third": WorldSettings(  # a third of the people, who share their names as often
        persons=270,
        companies=40,
        cities=40,
        countries=14,
        last_names=48,
        other_names=20,
        parallel_worlds=12,
        train_questions=1300,
        dev_questions=350,
        test_questions=500,
        seen_questions=200,
        evaluation_facts=150,
    ),
    "small": WorldSettings(
        persons=60,
        companies=12,
        cities=12,
        countries=6,
        first_names=12,
        last_names=24,
        other_names=8,
        parallel_worlds=1,
        train_questions=200,
        dev_questions=50,
        test_questions=50,
        seen_questions=50,
        evaluation_facts=50,
    ),
}
