"""Other engines than Spark, that make the same tables of the same Parquet."""
