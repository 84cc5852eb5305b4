"""Engines other than Spark that make the same tables from the same Parquet files."""
