"""Mutations: one wrong line each, in the heart of the code, and the nearest tests, of which one must fail.

The texts are exact and stand once in their files. After a change of a line its mutation changes with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["prior", "row", "budget", "loop", "counter", "formula", "check"]
KINDS: dict[Kind, str] = {
    "prior": "what may not be chosen has a weight",
    "row": "an index of another row",
    "budget": "the rounding or the end of a budget",
    "loop": "a loop that stops early, or not at all",
    "counter": "a counter that starts at the other end",
    "formula": "a term of a formula or a step of a procedure is another or missing",
    "check": "a check is left out",
}


@dataclass(frozen=True)
class Mutation:
    """`text` in a file becomes `becomes`.

    what: what is wrong then. survives: why no test fails then, if it is known that none does.
    """

    kind: Kind
    what: str
    text: str
    becomes: str
    survives: str = ""


@dataclass(frozen=True)
class Place:
    """Mutations of one file, and the tests that are run for each of them."""

    file: str
    tests: tuple[str, ...]
    mutations: tuple[Mutation, ...]


M = Mutation
OBJECTIVES = "tests/training/"
PLACES = [
    Place(
        "realmctl/models/marginal.py",
        ("tests/models/test_marginal.py",),
        (
            M(
                "prior",
                "an absent candidate has a prior",
                "score_BN.masked_fill(~candidate_mask_BN, torch.finfo(torch.float32).min)",
                "score_BN.masked_fill(~candidate_mask_BN, 0.0)",
            ),
            M(
                "prior",
                "the null document may be the best block of the utility",
                "real_prior_BN[:, 0] = -torch.inf",
                "real_prior_BN[:, 0] += 0",
            ),
            M(
                "prior",
                "a block that is withheld from a query has a score",
                "score_BC.masked_fill(~block_mask_BC, torch.finfo(torch.float32).min)",
                "score_BC.masked_fill(~block_mask_BC, 0.0)",
            ),
            M(
                "formula",
                "p(z|x) is missing in the marginal of each wordpiece",
                "torch.logsumexp(prior_BN[:, :, None] + likelihood_BNM, 1).masked_fill(~mask_BM, 0.0)",
                "torch.logsumexp(likelihood_BNM, 1).masked_fill(~mask_BM, 0.0)",
            ),
            M(
                "formula",
                "a span's likelihood is a mean over its wordpieces",
                "torch.logsumexp(prior_BN + likelihood_BNM.sum(2), 1)",
                "torch.logsumexp(prior_BN + likelihood_BNM.mean(2), 1)",
            ),
            M(
                "formula",
                "an unused slot counts in the marginal",
                "score_BN.log_softmax(1), mlm_log_prob_BNM.float().masked_fill(~kept_BNM, 0.0)",
                "score_BN.log_softmax(1), mlm_log_prob_BNM.float()",
            ),
            M(
                "formula",
                "a query with fewer masks than others is not counted",
                "asked_B = mask_BM.any(1)\n    log_prob_B = torch.logsumexp",
                "asked_B = mask_BM.all(1)\n    log_prob_B = torch.logsumexp",
            ),
            M(
                "check",
                "a batch without masks divides by 0",
                "normaliser = counted.sum().clamp(min=1)",
                "normaliser = counted.sum()",
            ),
            M(
                "row",
                "the utility is compared with the first block",
                "torch.logsumexp(prior_BN[:, :, None] + likelihood_BNM, 1) - likelihood_BNM[:, 0]",
                "torch.logsumexp(prior_BN[:, :, None] + likelihood_BNM, 1) - likelihood_BNM[:, -1]",
            ),
            M("formula", "an absent candidate has a utility", ".sum(2).masked_fill(~present_BN, 0.0)", ".sum(2)"),
            M(
                "formula",
                "the divergence is taken the other way round",
                "F.kl_div(score_BC.log_softmax(1), log_teacher_BC,",
                "F.kl_div(log_teacher_BC, score_BC.log_softmax(1),",
            ),
        ),
    ),
    Place(
        "realmctl/retrieval/search/candidates.py",
        ("tests/retrieval/search/test_candidates.py",),
        (
            M(
                "row",
                "in the second search a query has the own block of another",
                "        for query, ids in zip(short.tolist(), ids_BK, strict=True):\n            excluded = uid[:0] if excluded_B is None else excluded_B[query]",
                "        for place, (query, ids) in enumerate(zip(short.tolist(), ids_BK, strict=True)):\n            excluded = uid[:0] if excluded_B is None else excluded_B[place]",
            ),
            M(
                "row",
                "a candidate is written into the row of another query",
                "rows_BN[query, first : first + len(best)] = best",
                "rows_BN[query - 1, first : first + len(best)] = best",
            ),
            M(
                "row",
                "the first block of the corpus is read as the null document",
                "if row >= 0 else (nothing, nothing)",
                "if row > 0 else (nothing, nothing)",
            ),
            M("loop", "nothing is searched a second time", "if ids_BK.shape[1] < fetched:", "if True:"),
            M(
                "check",
                "a query finds its own block",
                "ids[first[~np.isin(uids[first], excluded)]]",
                "ids[first]",
            ),
            M(
                "check",
                "copies of a block are kept",
                "first = np.sort(np.unique(uids, return_index=True)[1])",
                "first = np.arange(len(uids))",
            ),
            M(
                "formula",
                "candidates are in the order of their uids",
                "first = np.sort(np.unique(uids, return_index=True)[1])",
                "first = np.unique(uids, return_index=True)[1]",
            ),
            M(
                "budget",
                "one candidate too few",
                "best = _distinct(ids, uid[ids], excluded)[: count - first]",
                "best = _distinct(ids, uid[ids], excluded)[: count - first - 1]",
            ),
        ),
    ),
    Place(
        "realmctl/training/pretrain.py",
        (
            OBJECTIVES + "test_pretrain.py::test_micro_batches_give_the_loss_and_gradients_of_the_whole",
            OBJECTIVES + "test_pretrain.py::test_the_loss_is_the_marginal_likelihood",
            OBJECTIVES + "test_pretrain.py::test_a_query_never_sees_its_own_block",
            OBJECTIVES + "test_pretrain.py",
        ),
        (
            M(
                "prior",
                "the null document has a weight where the objective has none",
                "score = F.pad(score_BN.float(), (1, 0), value=torch.finfo(torch.float32).min)",
                "score = F.pad(score_BN.float(), (1, 0), value=0.0)",
            ),
            M(
                "check",
                "a query may see its own block",
                "self.own_blocks.excluded(self.own_uid(drawn))",
                "None",
            ),
            M(
                "formula",
                "a micro-batch is divided by its own masks",
                "loss = self._objective(score_BN, log_prob_BNM, hidden_BM, present_BN, part.normaliser)",
                "loss = self._objective(score_BN, log_prob_BNM, hidden_BM, present_BN, None)",
            ),
            M(
                "formula",
                "the loss of each wordpiece is divided by the number of queries",
                "if self.settings.per_token else len(drawn)",
                "if not self.settings.per_token else len(drawn)",
            ),
            M(
                "row",
                "a query has the block vectors of its neighbour",
                "torch.from_numpy(place_BN.reshape(part.rows_BN.shape))",
                "torch.from_numpy(np.roll(place_BN.reshape(part.rows_BN.shape), 1, 0))",
            ),
            M(
                "formula",
                "queries are searched with dropout",
                "with evaluating(encoder), ",
                "with torch.no_grad(), ",
            ),
        ),
    ),
    Place(
        "realmctl/models/inputs.py",
        ("tests/models/test_inputs.py",),
        (
            M(
                "budget",
                "a query is one wordpiece too short",
                "return self._rows([tokens[: length - AROUND_ONE] for tokens in token_lists], None)",
                "return self._rows([tokens[: length - AROUND_ONE - 1] for tokens in token_lists], None)",
            ),
            M(
                "budget",
                "the query of the joint input is one wordpiece too short",
                "query[: query_length - AROUND_ONE]",
                "query[: query_length - AROUND_ONE - 1]",
            ),
            M(
                "budget",
                "the body of the joint input is one wordpiece too short",
                "body[: block_length - AROUND_ONE]",
                "body[: block_length - AROUND_ONE - 1]",
            ),
            M(
                "row",
                "a hidden wordpiece is asked for one position too early",
                "parts = [(1, query)]",
                "parts = [(0, query)]",
            ),
            M(
                "row",
                "the text beside a query is asked for one position too late",
                "second = 1 + len(query.tokens) + len(frame.between)",
                "second = 2 + len(query.tokens) + len(frame.between)",
            ),
            M(
                "row",
                "the second segment begins one position too late",
                "position >= first_end[:, None]",
                "position > first_end[:, None]",
            ),
            M(
                "row",
                "[SEP] counts as a wordpiece of the block",
                "packed.lengths_B[:, None] - 1",
                "packed.lengths_B[:, None]",
            ),
        ),
    ),
    Place(
        "realmctl/models/optimizer.py",
        ("tests/models/test_optimizer.py",),
        (
            M(
                "counter",
                "the warm-up counts from 1",
                "return base * step / warmup if step < warmup",
                "return base * (step + 1) / warmup if step < warmup",
            ),
            M(
                "counter",
                "the decay counts from the end of the warm-up",
                "max(0.0, 1 - step / total)",
                "max(0.0, 1 - (step - warmup) / (total - warmup))",
            ),
            M(
                "formula",
                "biases and norms decay",
                "(multiplier, parameter.ndim > 1), {}",
                "(multiplier, parameter.ndim > 0), {}",
            ),
            M(
                "counter",
                "Adam corrects the bias of the first steps",
                "self.first_step = 0.0 if bias_correction else _LONG_AGO",
                "self.first_step = 0.0",
            ),
            M(
                "formula",
                "gradients are not clipped",
                "nn.utils.clip_grad_norm_(trained, self.clip)",
                "nn.utils.clip_grad_norm_(trained, 1e9)",
            ),
            M(
                "counter",
                "the first layer has the rate of the last",
                "enumerate(reversed(family_of(base).from_below(base)))",
                "enumerate(family_of(base).from_below(base))",
            ),
        ),
    ),
    Place(
        "realmctl/models/retriever.py",
        ("tests/models/test_retriever.py",),
        (
            M(
                "formula",
                "the projection has no dropout",
                "embedding_BD: Tensor = self.dropout(self.norm(self.projection(pooled_BH)))",
                "embedding_BD: Tensor = self.norm(self.projection(pooled_BH))",
            ),
            M(
                "formula",
                "the projection drops out before its norm",
                "self.dropout(self.norm(self.projection(pooled_BH)))",
                "self.norm(self.dropout(self.projection(pooled_BH)))",
            ),
            M(
                "formula",
                "two towers are one",
                'block_tower = tower if towers == "shared" else copy.deepcopy(tower)',
                "block_tower = tower",
            ),
        ),
    ),
    Place(
        "realmctl/models/span_head.py",
        ("tests/models/test_span_head.py", OBJECTIVES + "test_hard_em.py"),
        (
            M(
                "prior",
                "a span may begin outside of the block",
                "valid_BS = block_mask_BL[:, start_S] & block_mask_BL[:, end_S]",
                "valid_BS = block_mask_BL[:, end_S]",
            ),
            M(
                "prior",
                "a span without an answer counts as a mention",
                "likeliest_Q = score_QC.masked_fill(~correct_QC, LOWEST).amax(1)",
                "likeliest_Q = score_QC.amax(1)",
            ),
            M(
                "prior",
                "a question without an answer has a loss",
                "return torch.where(correct_QC.any(1), share_Q, 0.0)",
                "return share_Q",
            ),
            M(
                "formula",
                "hard EM adds up all mentions",
                "masked_fill(~correct_QC, LOWEST).amax(1)",
                "masked_fill(~correct_QC, LOWEST).logsumexp(1)",
            ),
            M(
                "row",
                "a span ends one wordpiece later than it is said to",
                "end_S = torch.cat([torch.arange(width - 1, length) for width in widths])",
                "end_S = torch.cat([torch.arange(width - 1, length).clamp(min=1) for width in widths])",
            ),
        ),
    ),
    Place(
        "realmctl/training/finetune.py",
        (
            OBJECTIVES + "test_hard_em.py::test_the_first_step_is_step_0",
            OBJECTIVES + "test_finetune.py::test_the_loss_is_orqas",
            OBJECTIVES + "test_finetune.py",
        ),
        (
            M(
                "counter",
                "hard EM counts its steps from 1",
                "min(step / self.settings.hard_em_tau, MOST_HARD_EM)",
                "min((step + 1) / self.settings.hard_em_tau, MOST_HARD_EM)",
            ),
            M(
                "formula",
                "the score of a span lacks that of its block",
                "total_QRS = span_QRS + read_QR[:, :, None]",
                "total_QRS = span_QRS + 0 * read_QR[:, :, None]",
            ),
            M(
                "formula",
                "a part of a batch is divided by its own questions",
                "loss_Q.sum() / part.questions_in_batch",
                "loss_Q.mean()",
            ),
            M(
                "formula",
                "the retriever's loss is left out",
                "loss_Q = retrieval_loss(retrieval_QK, correct_QK) + loss_Q",
                "loss_Q = 0 * retrieval_loss(retrieval_QK, correct_QK) + loss_Q",
            ),
            M(
                "formula",
                "a question teaches only where its answer is read",
                "teaches_Q = found_Q | readable_Q",
                "teaches_Q = found_Q & readable_Q",
            ),
        ),
    ),
    Place(
        "realmctl/training/data/masked_blocks.py",
        (
            OBJECTIVES + "test_condenser.py::test_the_share_of_masks_is_rounded",
            OBJECTIVES + "test_condenser.py::test_no_word_that_fits_is_left_out",
            OBJECTIVES + "test_condenser.py::test_a_word_longer_than_the_budget_is_never_masked",
            OBJECTIVES + "test_condenser.py::test_an_unknown_word_is_never_masked",
            OBJECTIVES + "test_condenser.py::test_words_are_masked_whole_and_targets_are_aligned",
            OBJECTIVES + "test_condenser.py::test_a_window_begins_anywhere_in_its_block",
            OBJECTIVES + "test_condenser.py::test_the_windows_of_a_pair_are_from_two_blocks",
            OBJECTIVES + "test_condenser.py",
            OBJECTIVES + "test_mlm.py",
        ),
        (
            M(
                "budget",
                "the number of masks is cut off",
                "max(1, round(len(tokens) * self.rate))",
                "max(1, int(len(tokens) * self.rate))",
            ),
            M(
                "budget",
                "a word that is drawn first is masked, however long",
                "may_W[word_S] & (taken_S + size_W[word_S] <= budget)",
                "may_W[word_S] & ((taken_S + size_W[word_S] <= budget) | (taken_S == 0))",
            ),
            M(
                "budget",
                "the last mask is not used",
                "(taken_S + size_W[word_S] <= budget)",
                "(taken_S + size_W[word_S] < budget)",
            ),
            M(
                "loop",
                "the first word that does not fit ends the draw",
                "            if taken_S.min() >= budget:",
                "            if taken_S.min() >= budget or not fits_S.all():",
            ),
            M(
                "check",
                "[UNK] is masked",
                "may_W[word_L[tokens == self.spared]] = False",
                "may_W[word_L[tokens == self.spared]] = True",
            ),
            M(
                "row",
                "a window never has the last wordpiece of its block",
                "start = int(rng.integers(max(1, len(body) - room + 1)))",
                "start = int(rng.integers(max(1, len(body) - room)))",
            ),
            M(
                "formula",
                "BERT's masks are as many as otherwise stay",
                "rng.random(len(tokens)) < self.mask_rate",
                "rng.random(len(tokens)) >= self.mask_rate",
            ),
            M(
                "row",
                "two windows of a pair are from one block",
                "rng.choice(self.documents[number], 2, replace=False)",
                "rng.choice(self.documents[number], 2, replace=True)",
            ),
        ),
    ),
    Place(
        "realmctl/spans/query.py",
        (
            "tests/spans/test_query.py",
            OBJECTIVES + "test_condenser.py::test_words_are_masked_whole_and_targets_are_aligned",
        ),
        (
            M(
                "budget",
                "what is hidden behind the cut is asked for",
                "inside = self.places < room",
                "inside = self.places <= room",
            ),
            M(
                "row",
                "places are not moved behind a prefix",
                "return Query(tokens, self.places + len(prefix), self.targets, self.sentence, self.beside)",
                "return Query(tokens, self.places, self.targets, self.sentence, self.beside)",
            ),
            M(
                "formula",
                "a fifth of the hidden wordpieces become random ones",
                "(drawn < MASKED_SHARE + RANDOM_SHARE)",
                "(drawn < MASKED_SHARE + 2 * RANDOM_SHARE)",
            ),
            M(
                "budget",
                "a question leaves no room for its answer",
                "question[: room - len(answer)]",
                "question[:room]",
            ),
        ),
    ),
    Place(
        "realmctl/spans/tagged_queries.py",
        ("tests/spans/test_tagged_queries.py",),
        (
            M(
                "loop",
                "the last wordpiece of a span stays visible",
                "np.arange(first, min(first + width, len(tokens)))",
                "np.arange(first, min(first + max(1, width - 1), len(tokens)))",
            ),
            M(
                "budget",
                "a query is one wordpiece too short",
                "tokens = self.tokens(sentence)[: self.query_length - AROUND_ONE]",
                "tokens = self.tokens(sentence)[: self.query_length - AROUND_ONE - 1]",
            ),
            M(
                "budget",
                "the number of uniform masks is cut off",
                "max(1, round(UNIFORM_RATE * len(tokens)))",
                "max(1, int(UNIFORM_RATE * len(tokens)))",
            ),
            M(
                "row",
                "a random span never ends a sentence",
                "rng.integers(max(1, len(tokens) - width + 1))",
                "rng.integers(max(1, len(tokens) - width))",
            ),
        ),
    ),
    Place(
        "realmctl/spans/salient.py",
        ("tests/spans/test_salient.py",),
        (
            M(
                "check",
                "a wordpiece that is partly outside of a span is hidden",
                "span.start <= start < end <= span.end",
                "span.start < end and start < span.end",
            ),
            M(
                "budget",
                "a span may reach one character beyond its sentence",
                "span.end > sentences[row][1]:",
                "span.end > sentences[row][1] + 1:",
            ),
            M(
                "formula",
                "of overlapping spans the shortest stays",
                "(s.start - s.end, s.start, s.label)",
                "(s.end - s.start, s.start, s.label)",
            ),
        ),
    ),
    Place(
        "realmctl/training/ict.py",
        (OBJECTIVES + "test_ict.py",),
        (
            M(
                "budget",
                "the only sentence of a block is removed from it",
                "and stop - first > 1",
                "and stop - first > 0",
            ),
            M(
                "check",
                "blocks of one sentence are drawn",
                "sentences >= (2 if self.mask_rate > 0 else 1)",
                "sentences >= 1",
            ),
            M(
                "row",
                "a sentence goes on to the end of its block",
                "int(starts[k + 1]) if k + 1 < len(starts) else len(body)",
                "len(body)",
            ),
            M(
                "row",
                "a crop never has the last wordpiece of its block",
                "rng.integers(len(body) - length + 1)",
                "rng.integers(max(1, len(body) - length))",
            ),
            M(
                "formula",
                "the sentence stays in its block",
                "np.concatenate([body[:start], body[stop:]]) if masked else body",
                "body",
            ),
        ),
    ),
    Place(
        "realmctl/training/in_batch.py",
        (
            OBJECTIVES + "test_spider.py::test_the_loss_is_a_softmax_over_all_blocks_of_the_batch",
            OBJECTIVES + "test_spider.py::test_the_targets_of_a_process_are_its_own_blocks_among_those_of_all",
            OBJECTIVES + "test_ict.py",
            OBJECTIVES + "test_in_batch.py",
        ),
        (
            M(
                "row",
                "hard negatives are not counted in the number of the block to find",
                "torch.arange(self.own.start, self.own.stop) * len(examples[0].blocks)",
                "torch.arange(self.own.start, self.own.stop)",
            ),
            M(
                "row",
                "a second process looks for the blocks of the first",
                "torch.arange(self.own.start, self.own.stop) * len(examples[0].blocks)",
                "torch.arange(len(examples)) * len(examples[0].blocks)",
            ),
            M(
                "row",
                "a query whose block is withheld looks for the last block",
                "target_B.masked_fill(withheld_B, len(block_CD))",
                "target_B.masked_fill(withheld_B, len(block_CD) - 1)",
            ),
            M(
                "prior",
                "another place of the block to find is a negative",
                "name_C != name_C[target_B][:, None]",
                "torch.ones_like(name_C != name_C[target_B][:, None])",
            ),
            M(
                "prior",
                "a withheld block may be chosen",
                "scatter(1, target_B[:, None], ~withheld_B[:, None])",
                "scatter(1, target_B[:, None], True)",
            ),
        ),
    ),
    Place(
        "realmctl/lab/spider/objective.py",
        (
            OBJECTIVES + "test_spider.py::test_each_window_of_the_public_code_is_as_likely",
            OBJECTIVES + "test_spider.py::test_the_block_of_the_query_is_drawn_among_blocks_and_not_among_places",
            OBJECTIVES + "test_spider.py::test_a_pair_shares_the_span_and_the_hard_negative_lacks_it",
            OBJECTIVES + "test_spider.py::test_the_short_spans_of_the_public_code",
        ),
        (
            M(
                "row",
                "the block of a query is drawn among the places of its span",
                "block = _chosen(holding, draws[1])",
                "block = _chosen(places, draws[1])[0]",
            ),
            M(
                "row",
                "a window never begins within its span",
                "min(stop, beside - length)",
                "min(start, beside - length)",
            ),
            M("row", "a query looks for its own block", "[each for each in holding if each != block]", "holding"),
            M("check", "a hard negative has the span", "if each not in holding]", "if each != block]"),
            M(
                "budget",
                "a window is never the longest",
                "int(draws[0] * (self.window - SHORTEST_WINDOW + 1))",
                "int(draws[0] * (self.window - SHORTEST_WINDOW))",
            ),
            M(
                "row",
                "a window never begins at the last place",
                "begin = first + int(draws[1] * (last - first + 1))",
                "begin = first + int(draws[1] * (last - first))",
            ),
            M(
                "budget",
                "a query without the span is shorter by it",
                "body[stop : stop + length - len(left)]",
                "body[stop : begin + length]",
            ),
        ),
    ),
    Place(
        "realmctl/lab/spider/recurring_spans.py",
        ("tests/lab/spider/test_recurring_spans.py",),
        (
            M(
                "loop",
                "spans have at most nine words",
                "for length in range(1, longest + 1):",
                "for length in range(1, longest):",
            ),
            M(
                "loop",
                "a span never ends its block",
                "if first + length < len(ids) and",
                "if first + length < len(ids) - 1 and",
            ),
            M("check", "a span may end with a common word", "if gram[-1] not in common]", "]"),
            M(
                "check",
                "a span within a longer one stays",
                "if not set.intersection(*(around(length, *place) for place in at))",
                "",
            ),
        ),
    ),
    Place(
        "realmctl/models/condenser.py",
        ("tests/models/test_condenser.py",),
        (
            M(
                "prior",
                "a span may find itself",
                'score_SC.masked_fill(~counts_SC, float("-inf"))',
                "score_SC.masked_fill(~counts_SC, 0.0)",
            ),
            M(
                "check",
                "another pair of the document is a negative",
                "document_C != document_C[place_S][:, None]",
                "torch.arange(len(all_CH), device=own_SH.device) != place_S[:, None]",
            ),
            M(
                "row",
                "the spans of a second process are taken for those of the first",
                "torch.arange(first, first + len(own_SH), device=own_SH.device)",
                "torch.arange(0, len(own_SH), device=own_SH.device)",
            ),
            M(
                "row",
                "a span looks for the next one",
                "target_S = place_S ^ 1",
                "target_S = (place_S + 1) % len(all_CH)",
            ),
            M(
                "formula",
                "the head reads the last layer's token states",
                "torch.cat([late_BLH[:, :1], early_BLH[:, 1:]], dim=1)",
                "torch.cat([late_BLH[:, :1], late_BLH[:, 1:]], dim=1)",
            ),
        ),
    ),
    Place(
        "realmctl/training/condenser.py",
        (
            OBJECTIVES + "test_condenser.py::test_chunks_do_not_change_the_loss_without_dropout",
            OBJECTIVES + "test_condenser.py::test_a_batch_without_masks_teaches_nothing",
            OBJECTIVES + "test_condenser.py",
        ),
        (
            M(
                "formula",
                "a chunk is divided by its own masks",
                "1 / max(1, part.masks_in_batch), len(targets)",
                "1 / max(1, len(targets)), len(targets)",
            ),
            M(
                "check",
                "a batch without masks is a step",
                "(loss if part.masks_in_batch or self.settings.contrastive else None)",
                "loss",
            ),
        ),
    ),
    Place(
        "realmctl/lab/retromae/objective.py",
        (OBJECTIVES + "test_retromae.py",),
        (
            M(
                "prior",
                "a position of the decoder reads itself",
                "np.fill_diagonal(visible_LL, False)",
                "np.fill_diagonal(visible_LL, True)",
            ),
            M(
                "row",
                "all positions of the decoder read one set",
                "visible_LL = visible_SL[rng.integers(sets, size=length)]",
                "visible_LL = visible_SL[rng.integers(sets, size=1).repeat(length)]",
            ),
            M("formula", "the decoder never hides [UNK]", "spared=None)", "spared=self.examples.masking.spared)"),
        ),
    ),
    Place(
        "realmctl/training/gradient_cache.py",
        ("tests/training/test_gradient_cache.py",),
        (
            M(
                "formula",
                "the second pass draws another dropout",
                "torch.set_rng_state(self.cpu_state)",
                "torch.get_rng_state()",
            ),
            M(
                "formula",
                "the second pass reports another loss",
                "return inner - inner.detach() + self.loss",
                "return inner",
            ),
            M(
                "formula",
                "a chunk has the loss of the whole batch",
                "float(loss.detach()) * fraction, float(accuracy)",
                "float(loss.detach()), float(accuracy)",
            ),
        ),
    ),
    Place(
        "realmctl/training/data/order.py",
        ("tests/training/data/test_order.py",),
        (
            M(
                "row",
                "the last block never has its last span drawn",
                "np.diff(first, append=count)",
                "np.diff(first, append=count - 1)",
            ),
            M(
                "formula",
                "every pass has the same order",
                "rng = np.random.default_rng([self.seed, number])\n        kept",
                "rng = np.random.default_rng([self.seed, 0])\n        kept",
            ),
        ),
    ),
    Place(
        "realmctl/training/loop.py",
        ("tests/training/test_loop.py::test_a_run_is_the_trace_of_berts_optimizer_and_schedule_by_hand",),
        (
            M(
                "counter",
                "a step has the rate of the next one",
                "rate = bert_lr(step, self.settings.steps",
                "rate = bert_lr(step + 1, self.settings.steps",
            ),
        ),
    ),
    Place(
        "realmctl/training/refresh/protocol.py",
        (
            "tests/training/refresh/test_protocol.py",
            "tests/training/refresh/test_refresher.py",
            "tests/training/test_damaged_run.py::test_a_damaged_index_is_built_again",
        ),
        (
            M(
                "counter",
                "the oldest snapshot is taken for the newest",
                "return max(self.steps(), default=0)",
                "return min(self.steps(), default=0)",
            ),
            M(
                "counter",
                "the newest are deleted and the oldest kept",
                "for step in self.steps()[:-KEPT]:",
                "for step in self.steps()[KEPT:]:",
            ),
            M(
                "check",
                "what the trainer needs is deleted",
                "            if step not in needed:\n                self.remove(step)",
                "            self.remove(step)",
            ),
            M(
                "check",
                "a late refresher takes another's request for its own",
                "return self.request().token == token",
                "return bool(self.request().token)",
            ),
            M(
                "check",
                "all may be deleted when it is not known what is needed",
                "        except (OSError, ValueError, RealmctlError):\n            return None",
                "        except (OSError, ValueError, RealmctlError):\n            return set()",
            ),
            M(
                "check",
                "an index of another retriever is used",
                'if retriever is not None and artifact.lineage.get("retriever") != retriever:',
                "if False:",
            ),
            M("check", "a damaged index is used", "            verify(artifact)\n", ""),
        ),
    ),
    Place(
        "realmctl/training/refresh/refresher.py",
        (
            "tests/training/refresh/test_refresher.py::test_it_takes_the_newest_snapshot_and_skips_those_it_missed",
            "tests/training/refresh/test_refresher.py::test_a_refresher_that_is_overtaken_after_the_last_blocks_does_not_deliver",
            "tests/training/refresh/test_refresher.py::test_the_index_of_an_earlier_attempt_at_a_step_is_made_again",
        ),
        (
            M(
                "counter",
                "the oldest snapshot is embedded first",
                "step = self.folder.snapshots.newest()",
                "step = min(self.folder.snapshots.steps(), default=0)",
            ),
            M(
                "check",
                "a late refresher delivers",
                "            self._require_own_request()\n            self.folder.deliver(unfinished, step)",
                "            self.folder.deliver(unfinished, step)",
            ),
            M(
                "check",
                "an index of an earlier attempt counts as that of the snapshot",
                'return index.lineage.get("retriever") == snapshot.content',
                "return True",
            ),
        ),
    ),
    Place(
        "realmctl/training/refresh/index_in_use.py",
        (
            "tests/training/refresh/test_index_in_use.py::test_a_run_does_not_go_on_with_another_snapshot_than_the_checkpoint_names",
            "tests/training/refresh/test_index_in_use.py::test_training_waits_for_an_index_that_is_too_old",
        ),
        (
            M(
                "check",
                "a run goes on with another snapshot than the checkpoint names",
                "if self._refresh.snapshot(step).content != content:",
                "if False:",
            ),
            M(
                "loop",
                "nobody waits for a fresher index",
                "if not self._must_wait(refresh, step):",
                "if self._must_wait(refresh, step) is not None:",
            ),
        ),
    ),
    Place(
        "realmctl/index/exact.py",
        ("tests/index/test_exact.py",),
        (
            M(
                "row",
                "ids of a later chunk are those of the first",
                "both_ids = torch.cat([ids_BK, ids + start], dim=1)",
                "both_ids = torch.cat([ids_BK, ids], dim=1)",
            ),
            M(
                "loop",
                "the last rows are not searched",
                "rest = torch.arange(whole, columns, device=scores_BC.device)",
                "rest = torch.arange(min(whole + 1, columns), columns, device=scores_BC.device)",
            ),
            M("formula", "of equal scores any is taken", "if len(again):", "if False:"),
            M(
                "budget",
                "one group too few is searched",
                "best_BG.topk(groups, dim=1).indices",
                "best_BG.topk(max(1, groups - 1), dim=1).indices",
            ),
        ),
    ),
    Place(
        "realmctl/index/merged.py",
        ("tests/index/test_merged.py",),
        (
            M(
                "row",
                "rows of the second part are those of the first",
                "np.where(own_ids < 0, own_ids, own_ids + first)",
                "own_ids",
            ),
            M(
                "row",
                "what a part did not find becomes a row",
                "np.where(own_ids < 0, own_ids, own_ids + first)",
                "own_ids + first",
            ),
            M(
                "row",
                "a process takes the answers to the queries of the first",
                "first = sum(len(part) for part in queries[: self._rank])",
                "first = 0",
            ),
        ),
    ),
    Place(
        "realmctl/index/recall.py",
        ("tests/index/test_recall.py",),
        (
            M(
                "prior",
                "a row is its own neighbour",
                "scores = np.where(ids == own[:, None], -np.inf, scores)",
                "scores = np.where(ids == own[:, None], scores, scores)",
            ),
            M(
                "budget",
                "one neighbour too few is looked for",
                "scores, ids = search(queries, k + 1)",
                "scores, ids = search(queries, k)",
            ),
            M(
                "formula",
                "the recall is that of the best depth",
                "return min((self._at(depth, search)",
                "return max((self._at(depth, search)",
            ),
        ),
    ),
    Place(
        "realmctl/questions/answers.py",
        ("tests/questions/test_answers.py",),
        (
            M(
                "loop",
                "an answer at the end of a text is not found",
                "range(len(held) - width + 1) if held",
                "range(len(held) - width) if held",
            ),
            M(
                "budget",
                "the widest answer is not found",
                "if len(answer) <= max_width",
                "if len(answer) < max_width",
            ),
            M("formula", "a pattern may match anywhere", 'anywhere=scorer == "regex-search"', "anywhere=True"),
            M(
                "check",
                "an empty answer is in every text",
                "any(answer in text for answer in answers if answer)",
                "any(answer in text for answer in answers)",
            ),
        ),
    ),
    Place(
        "realmctl/questions/scorers.py",
        ("tests/questions/test_scorers.py", "tests/questions/test_answers.py"),
        (
            M(
                "formula",
                "ORQA's scorer composes accents",
                'return normalise_squad(unicodedata.normalize("NFD", text))',
                'return normalise_squad(unicodedata.normalize("NFC", text))',
            ),
            M(
                "formula",
                "articles are removed before punctuation",
                'return _spaced(_ARTICLE.sub(" ", _bare(text)))',
                'return _spaced(_bare(_ARTICLE.sub(" ", text.lower())))',
            ),
        ),
    ),
    Place(
        "realmctl/questions/splits.py",
        ("tests/questions/test_splits.py",),
        (M("row", "another tenth of the questions is dev", "% 100_000 % 10 == 0", "% 100_000 % 10 == 9"),),
    ),
    Place(
        "realmctl/extras/ir/ranking/measures.py",
        ("tests/extras/ir/ranking/test_measures.py",),
        (
            M(
                "formula",
                "of equal scores the smaller id is first",
                "ranked = sorted(zip(score_N, scores, strict=True), reverse=True)",
                "ranked = sorted(sorted(zip(score_N, scores, strict=True)), key=lambda pair: -pair[0])",
            ),
        ),
    ),
    Place(
        "realmctl/training/evaluation/cloze_recall.py",
        ("tests/training/evaluation/test_cloze_recall.py",),
        (
            M(
                "counter",
                "the best passage has rank 0",
                "found: Ranks = (score_NM >= own_N1).sum(1)",
                "found: Ranks = (score_NM > own_N1).sum(1)",
            ),
            M("counter", "reciprocal ranks count from 0", 'axis=1, kind="stable") + 1\n', 'axis=1, kind="stable")\n'),
            M(
                "formula",
                "the sentence stays in its passage",
                "np.delete(body, slice(*cut[row])) if row in cut else body",
                "body",
            ),
            M(
                "formula",
                "titles in the words of their blocks count as reworded",
                "np.argsort(shared, kind",
                "np.argsort(-shared, kind",
            ),
        ),
    ),
    Place(
        "realmctl/corpus/blocks.py",
        ("tests/corpus/test_blocks.py",),
        (
            M(
                "budget",
                "a block is never quite full",
                "if current and length + further > room:",
                "if current and length + further >= room:",
            ),
            M(
                "budget",
                "a block is one wordpiece too long",
                "room = most - around - len(title_ids) // size",
                "room = most - around - len(title_ids) // size + 1",
            ),
            M(
                "formula",
                "two blocks of one text and two titles are one",
                'f"{self.title} <sep> {self.text}"',
                'f"{self.text}"',
            ),
        ),
    ),
    Place(
        "realmctl/artifacts/hashing.py",
        ("tests/artifacts/test_hashing.py",),
        (
            M(
                "check",
                "a file with another seal is read",
                'table.pop("seal", None) != seal_of(table)',
                'table.pop("seal", None) is None',
            ),
            M(
                "check",
                "the seal covers the names alone",
                '{key: value for key, value in table.items() if key != "seal"}, allow_nan=True',
                '[key for key in table if key != "seal"], allow_nan=True',
            ),
        ),
    ),
    Place(
        "realmctl/artifacts/manifest.py",
        ("tests/artifacts/test_artifact.py",),
        (
            M(
                "check",
                "a manifest with another seal is read",
                "whole = table == sealed(table) and text == _rendered(table)",
                "whole = True",
            ),
            M(
                "check",
                "parts are no part of an artifact's identity",
                "for name, entry in self.files.items()}, dict(self.parts)])",
                "for name, entry in self.files.items()}])",
            ),
            M(
                "check",
                "the lineage is no part of a recipe",
                "self.settings, self.inputs, self.lineage])",
                "self.settings, self.inputs])",
            ),
        ),
    ),
    Place(
        "realmctl/artifacts/lease.py",
        ("tests/artifacts/test_gc.py",),
        (
            M("check", "a reader locks nothing", "fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)", "pass"),
            M(
                "check",
                "gc takes a lock that readers share",
                "fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)",
                "fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)",
            ),
            M(
                "check",
                "a version that was deleted meanwhile is opened",
                "    if not _is_there(handle, path):\n        raise",
                "    if False:\n        raise",
            ),
        ),
    ),
    Place(
        "realmctl/artifacts/gc.py",
        ("tests/artifacts/test_gc.py", "tests/artifacts/test_gc_plan.py"),
        (
            M(
                "check",
                "what was needed before the locks decides what is deleted",
                "_deletable(current, newest, in_use)}",
                "_deletable(workspace, newest, in_use)}",
            ),
            M(
                "counter",
                "the oldest versions are kept",
                "readable[max(0, len(readable) - newest) :]",
                "readable[:newest]",
            ),
            M("loop", "what an input needs is deleted", "                wanted += version.needs\n", ""),
        ),
    ),
]


def misfits(root: Path) -> list[str]:
    """Return what is wrong with the table: texts that do not stand once in their files, files of tests that are not there."""
    found = []
    for place in PLACES:
        whole = (root / place.file).read_text(encoding="utf-8")
        found += [
            f"{place.file} holds {whole.count(mutation.text)} times and not once: {mutation.text}"
            for mutation in place.mutations
            if whole.count(mutation.text) != 1
        ]
        for file, _, test in (test.partition("::") for test in place.tests):
            if not (root / file).is_file() or f"def {test}" not in (root / file).read_text(encoding="utf-8"):
                found.append(f"{place.file} names a test that is not there: {file} {test}")
    return found
