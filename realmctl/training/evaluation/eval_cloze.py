"""Cloze recall of a retriever, of BM25 and of both, over the same sentences, and the weight of BM25 that finds most."""

from __future__ import annotations

from collections.abc import Mapping

from realmctl.artifacts import Writer
from realmctl.corpus.corpus import Corpus
from realmctl.log import progress, say
from realmctl.models.inputs import Collator
from realmctl.models.precision import pick_device
from realmctl.models.retriever import Retriever
from realmctl.questions.per_query import PER_QUERY, PerQuery
from realmctl.retrieval.embedding.reused import same_retriever
from realmctl.tokens.tokenizer import Tokenizer
from realmctl.training.evaluation.cloze_recall import (
    DEPTHS,
    FEWEST_TITLES,
    ClozePassages,
    Ranks,
    gain,
    ranks_of,
    recall,
)
from realmctl.training.settings.cloze import EvalClozeSettings


def eval_cloze(settings: EvalClozeSettings, out: Writer) -> dict[str, object]:
    """Measure what the settings ask for, and write the measures of each sentence and title (per-query.jsonl).

    Returns:
        `sentences` and `blocks`, their numbers, and of the titles `titles` and `title_rr`, the mean reciprocal rank; what `recall` returns for the method. With a start, `start`, the same measures of it, and the gain over it (dense over dense), of titles too, and of reworded titles.
    """
    corpus, words = Corpus(settings.blocks), Tokenizer.load(settings.blocks.path)
    passages = ClozePassages.drawn(corpus, settings.sentences, settings.among, settings.seed, settings.query_wordpieces)
    counts: dict[str, object] = {"sentences": len(passages.sentences), "blocks": len(passages)}
    say(f"eval-cloze: {counts['sentences']} sentences look for their blocks among {counts['blocks']}")
    if settings.method == "bm25":
        rank_N = ranks_of(passages.bm25_scores(words, settings.bm25_stemmer, settings.bm25_tokens))
        _write(out, words, {"cloze": (passages, rank_N)})
        return {**counts, **recall(rank_N)}
    assert settings.retriever is not None
    collator, device = Collator.of(words), pick_device(settings.device)
    titles = ClozePassages.titled(corpus, settings.titles, settings.among, settings.seed) if settings.titles else None
    if settings.titles and titles is None:
        say(f"eval-cloze: fewer than {FEWEST_TITLES} titles say what their block does not, so no titles are asked for")
    asked = [passages, titles] if titles else [passages]
    measured, start = [settings.retriever], settings.start
    if start is not None and not same_retriever(start, settings.retriever):  # it is not one that training kept
        measured.append(start)
    with progress(len(measured) * sum(map(len, asked)), "measuring", "blocks") as bar:
        scores = [
            [each.scores(loaded, collator, settings.precision, bar.advance, whose) for each in asked]
            for whose, loaded in ((each, Retriever.load(each.path).to(device)) for each in measured)
        ]
    score_NM = scores[0][0]
    rank_N, found = ranks_of(score_NM), counts
    asked_for = {"cloze": (passages, rank_N)}
    if titles is not None:
        title_N = ranks_of(scores[0][1])
        asked_for["title"] = titles, title_N
        found |= {"titles": len(title_N), "title_rr": round(float((1 / title_N).mean()), 6)}
    if start is not None:
        start_N = ranks_of(scores[-1][0])
        found |= {"start": recall(start_N), **_gain("gain", rank_N, start_N)}
        if titles is not None:
            title_start_N, reworded_N = ranks_of(scores[-1][1]), titles.in_other_words()
            found |= _gain("title_gain", title_N, title_start_N)
            found |= _gain("reworded_title_gain", title_N[reworded_N], title_start_N[reworded_N])
    _write(out, words, asked_for)
    return {**found, **recall(rank_N)}


def _write(out: Writer, words: Tokenizer, asked: Mapping[str, tuple[ClozePassages, Ranks]]) -> None:
    """Write per-query.jsonl: of each sentence `cloze_rr` and `cloze_recall@k`, of each title `title_rr`."""
    with out.file(PER_QUERY).open("w", encoding="utf-8") as file:
        lines = PerQuery(file)
        for kind, (passages, rank_N) in asked.items():
            for number, (sentence, rank) in enumerate(zip(passages.sentences, rank_N.tolist(), strict=True), 1):
                depths = DEPTHS if kind == "cloze" else ()
                found = {f"{kind}_rr": 1 / rank, **{f"{kind}_recall@{k}": float(rank <= k) for k in depths}}
                lines.add(f"{kind}-{number}", found, words.text_of(sentence.tolist()))


def _gain(name: str, rank_N: Ranks, start_N: Ranks) -> dict[str, float]:
    won = gain(rank_N, start_N)
    return {name: won.mean, f"{name}_low": won.low, f"{name}_high": won.high}
