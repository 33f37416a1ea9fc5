"""Encoders that are no BERT: RoBERTa, MPNet and ModernBERT as towers and readers, and others as towers of a retriever."""

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
        "eurobert": "realmctl.extras.families.tower_only:EuroBert",
    },
}
