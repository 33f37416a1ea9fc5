"""Encoders that are no BERT, but have its shape: RoBERTa, MPNet, ModernBERT."""

OFFERS = {
    "realmctl.families": {
        "roberta": "realmctl.extras.families.roberta:Roberta",
        "xlm-roberta": "realmctl.extras.families.roberta:XlmRoberta",
        "camembert": "realmctl.extras.families.roberta:Camembert",
        "mpnet": "realmctl.extras.families.mpnet:Mpnet",
        "modernbert": "realmctl.extras.families.modernbert:ModernBert",
    },
}
