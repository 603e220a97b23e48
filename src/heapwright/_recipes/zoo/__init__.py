"""The zoo: allocators with a name and a source, each a TOML recipe in this folder."""
