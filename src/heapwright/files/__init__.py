"""Files of every kind: written whole or not at all, Parquet tables, and TOML that ships with the package."""
