"""Help texts of the options that several stages have, so that one option reads the same everywhere."""

DEVICE = "Device to compute on: auto (a GPU if there is one), cpu or cuda:N."
PRECISION = "Arithmetic: fp32, bf16, or auto (bf16 where it is faster)."
SEED = "Seed of all random numbers."
STEPS = "Number of training steps."
LEARNING_RATE = "Peak learning rate."
WARMUP = "Number of warm-up steps. Default: a tenth of the steps, at most 10000."
THEN_LR = (
    "From a step on, another peak learning rate: STEP=RATE, or several, separated by commas. With it the command of a run that diverged "
    "goes on from its last checkpoint up to this step."
)
STOP_ON = (
    "Alarms at which the run stops with exit code 6 and keeps its checkpoint: one or more names, separated by commas."
)
LAYER_DECAY = (
    "Factor of the encoder's learning rate from each layer to the layer below it, and from the first layer to the embeddings, above 0 "
    "and at most 1. Below 1 the lower layers keep more of what they knew."
)
READER_LAYER_DECAY = LAYER_DECAY.replace("the encoder's", "the reader's", 1)
OPTIMIZER = "bert: AdamW as BERT and REALM use it. adamw: betas 0.9 and 0.98 with bias correction, for runs of a few hundred steps."
CHECKPOINT_EVERY = "Number of steps between checkpoints."
WORKERS = "Number of worker processes; 0 means all cores."
EXECUTOR = "Where the workers run. local: on this machine. ray: on the Ray cluster that RAY_ADDRESS names. The result is the same."
CONTRAST_MICRO_BATCH = (
    "Queries computed at once, with their blocks; 0 means the whole batch. The gradients stay the same."
)
DISTILL_START = (
    "Weight of a second loss, which holds on to what the retriever knew: the Kullback-Leibler divergence of the batch's softmax from that of "
    "the retriever before training. 0 leaves it out."
)
BM25_WEIGHT = "hybrid: factor of BM25's part in the fusion. Default: 1, by which each query says how much BM25 counts."
SCORER = "Scorer that gives `em`; its published script says what counts as equal. auto: orqa, or regex-match where answers are regular expressions."
FUSION = (
    "hybrid: what is summed up. scores, the default: those of both rankings, from 1 for the first block to 0 for the last (min-max). ranks: 1 / (k + rank) "
    "in both (RRF)."
)
RERANK = "What reads the first hits again and sorts them: a folder or hub id of a cross-encoder, or an artifact: cross-encoder, model or qa-model."
RERANK_DEPTH = "Hits of a question that are reranked. Default: 50."
RERANK_FUSED = "Fuse the reranker's order with that of the search, by ranks (RRF). It gains less where the reranker is good, and loses less where it is not."
REGEX_ANSWERS = "Treat answers as regular expressions. Default: decided by the format of the file."
ANSWER_FIELD = "Name of the field that holds the answers. Default: decided by the format of the file."
QUESTIONS = "File of questions with answers: NQ-open, WebQuestions, CuratedTREC, SQuAD and others."
INDEX_SHARDS = (
    "Under torchrun: divide the index over the processes instead of giving each the whole index. Needs an exact index, or an hnsw "
    "index that was built with --shards."
)
BM25_TOKENS = (
    "What BM25 compares: the wordpieces of the model (pieces), or whole words. Words suit a language with blanks and few endings; with "
    "--bm25-stemmer they are always compared."
)
BM25_STEMMER = (
    "Compare words without their endings in BM25, by the Snowball stemmer of this name, such as german or de (PyStemmer, extra bm25). Default: in "
    "a search that of the blocks' language, if there is one and no --bm25-tokens."
)
GROUP_BY = (
    "What makes blocks parts of one document, for a corpus of passages. document: the document that they were cut from. title: its title. "
    "source: its id without a number at the end, such as ls for ls#0 and ls#1."
)
QUERY_WORDPIECES = (
    "Longest query of cloze recall: of a longer sentence a random run of so many wordpieces is taken. Questions are shorter than sentences, and BM25 is judged by "
    "short queries alone. 0: whole sentences."
)
WORKERS_ARE_UNKNOWN = "what the workers of its --executor take is not known here"
WORKSPACE = "Folder of the inputs and outputs whose path is not given."
OUT = "Series to write to. Default: <workspace>/<kind>."
DRY_RUN = (
    "Print the plan and make nothing. A part of the work is done in a temporary folder, to estimate time and memory."
)
DOCUMENTS = "Folder, file or address of documents, in any format that `chunk` reads."
LANGUAGE = (
    "Language of the documents: the code under which it has a Wikipedia, such as ko, or und for several. auto: what a dump says, or else "
    "English."
)
FILTER = (
    "Blocks that may be found, by the fields of their documents, such as 'date>=2024 and source==\"handbook\"'. Operators: == != < <= > >= in contains; "
    "and, or, not and parentheses."
)
ID_FIELD = "Field or column of JSON lines, CSV, TSV or Parquet that holds the id."
TITLE_FIELD = "Field or column that holds the title."
TEXT_FIELD = "Field or column that holds the text."
KEEP_FIELDS = (
    "Fields or columns of JSON, CSV, TSV and Parquet that are kept beside the text, with commas between them, such as date,source. A search shows them. "
    "What a file says of itself, such as front matter, is kept anyway."
)
BAD_FILES = (
    "What happens with a file that cannot be read, such as an image or a scanned PDF. skip: it is set aside and listed. Default: skip in a folder; "
    "a file that is named must be read."
)
SENTENCE_ENCODER = "Default: all-MiniLM-L6-v2, from the extra `encoder` or from the hub; for a language other than English a multilingual MiniLM of the hub."
LONGEST_BLOCK = (
    "Longest block in wordpieces, with its title and special tokens. Default: 200, or what the encoder reads."
)
VARIABLE = "name=value: replaces a variable of the file. Repeatable."
TABLE_FORM = "Form of the table; --json prints it as JSON."
