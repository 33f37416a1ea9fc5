"""Parquet and Arrow files, and the dataset folders of Hugging Face that hold them."""
