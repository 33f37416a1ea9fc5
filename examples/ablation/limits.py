"""What the page cannot show, in words. Whoever changes the recipe or the world changes this text too."""

LIMITS = """\
**What was tuned on what.** The grid tunes one number of each variant, its learning rate, on two dev seeds. All other settings are the same
for all variants: steps, batch, candidates, ICT of the start, and the fine-tuning of the variants with a dense retriever at 1e-3. They were
chosen on REALM's runs of seeds 0 to 24, and not for each variant. This has three consequences:

- The first rates of the grid lie around a rate that is good for REALM.
- A variant might gain from more steps or other settings that nobody tried.
- Two dev seeds may choose a rate that is not the best one.

**What was chosen so that an effect could show.** The world is made so that pre-training has something to learn:

- People share first and last names, so only a conjunction identifies one. With many first names or full titles, the start is so good that
  neither pre-training nor a fresh index matters.
- Questions use the words of the sentences and not of the encyclopedia. With words of their own, recall on questions falls although
  utility rises.
- Dev and test questions are about held-out entities. So the closed book can only guess, and its row says nothing about memory.
- ICT stops after 80 steps. A longer ICT makes a better start and a smaller lead of REALM; ORQA has about as much more ICT as
  REALM takes time.
- Few candidates are read, but more than at first: with 4 blocks a query REALM fails on one of the two dev seeds, with 7 on none
  ([notes](notes.md)). With more candidates a stale index matters less, and the world has only 904 documents.
- Facts are unique in the world of most variants. Only the X = Z variants have a world that tells half of the facts in two documents.

**What is shared.** All seeds share the copy pre-training: one encoder, trained on parallel worlds with the same names and other facts. A
seed varies world, ICT, pre-training and fine-tuning. So the spread over seeds leaves out the variation between encoders.

**What the statistics leave out.** There are about twenty comparisons with 95 % intervals, and no correction for their number. One of them
may be shown by chance. Student's t assumes normal differences, and some variants either learn or collapse.

**What other choices gave.** [The notes](notes.md) report single runs with other rates, candidates, starts and
worlds. Among them are runs in which a stale index costs nothing, and others in which random spans reach the recall of salient spans."""
