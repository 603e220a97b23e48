"""Files of every kind: written whole or not at all, temporary, Parquet, TOML of the package; tools that write them."""
