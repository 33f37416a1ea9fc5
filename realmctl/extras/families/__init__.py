"""Encoders that are no BERT: RoBERTa, MPNet and ModernBERT as towers and readers, others as towers of a retriever, and their poolings."""

OFFERS = {
    "realmctl.families": {
        "roberta": "realmctl.extras.families.roberta:Roberta",
        "xlm-roberta": "realmctl.extras.families.roberta:XlmRoberta",
        "camembert": "realmctl.extras.families.roberta:Camembert",
        "mpnet": "realmctl.extras.families.mpnet:Mpnet",
        "modernbert": "realmctl.extras.families.modernbert:ModernBert",
        "distilbert": "realmctl.extras.families.tower_only:DistilBert",
        "albert": "realmctl.extras.families.tower_only:Albert",
        "ernie": "realmctl.extras.families.tower_only:Ernie",
        "nomic_bert": "realmctl.extras.families.tower_only:NomicBert",
        "gte": "realmctl.extras.families.tower_only:Gte",
        "jina_embeddings_v3": "realmctl.extras.families.tower_only:JinaV3",
        "eurobert": "realmctl.extras.families.tower_only:EuroBert",
        "llama": "realmctl.extras.families.tower_only:Llama",
        "mistral": "realmctl.extras.families.tower_only:Mistral",
        "qwen2": "realmctl.extras.families.tower_only:Qwen2",
        "qwen3": "realmctl.extras.families.tower_only:Qwen3",
        "gemma": "realmctl.extras.families.tower_only:Gemma",
        "gemma2": "realmctl.extras.families.tower_only:Gemma2",
        "gemma3_text": "realmctl.extras.families.tower_only:Gemma3",
        "t5": "realmctl.extras.families.tower_only:T5",
        "mt5": "realmctl.extras.families.tower_only:Mt5",
        "static_embedding": "realmctl.extras.families.static:Static",
    },
    "realmctl.encoder_sources": {
        "StaticEmbedding": "realmctl.extras.families.static:static_source",
        "model2vec": "realmctl.extras.families.static:static_source",
        "adapter_config.json": "realmctl.extras.families.lora:lora_source",
    },
    "realmctl.poolings": {
        "max": "realmctl.extras.families.poolings:maximum",
        "lasttoken": "realmctl.extras.families.poolings:last_token",
        "weightedmean": "realmctl.extras.families.poolings:weighted_mean",
        "mean_sqrt_len_tokens": "realmctl.extras.families.poolings:mean_of_root",
    },
}
