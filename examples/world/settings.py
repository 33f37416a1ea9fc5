"""The size and difficulty of a world: every number that the generator obeys, and the two named sizes."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class WorldSettings:
    """What is asked of one world. All shares lie in [0, 1]; all counts are plain numbers of things."""

    seed: int = 0
    persons: int = 800
    companies: int = 120
    cities: int = 120
    countries: int = 40
    first_names: int = 24  # fewer names: more people share them, so a match must hold for both parts
    last_names: int = 140
    other_names: int = 40  # schools, awards, newspapers, clubs, rivers, currencies, peaks: so many of each
    blocks_per_person: int = 3  # 1 to 3: the same facts in fewer, longer documents
    two_word_share: float = 0.25  # of names such as "Port Velford", and of dates such as "March 1912"
    full_name_share: float = 0.3  # how a document's later sentences call its subject: by the full name,
    pronoun_share: float = 0.25  # by a pronoun, else by the last name or "the firm"
    filler_share: float = 0.3  # of documents that hold one sentence without any fact
    held_out_share: float = 0.3  # of entities that appear in the knowledge corpus only
    off_corpus_share: float = 0.0  # of the sentence corpus that is about people the knowledge corpus lacks
    parallel_worlds: int = 6
    quiz_share: float = 0.04  # of the parallel worlds' facts that parallel/questions asks for, without an answer
    train_questions: int = 4000
    dev_questions: int = 500
    test_questions: int = 1000
    seen_questions: int = 500
    evaluation_facts: int = 400  # told in each of the two corpora of sentences that no stage learns from


SIZES: dict[str, WorldSettings] = {
    "demo": WorldSettings(),
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
