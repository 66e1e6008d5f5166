"""Files that describe a machine: which format each has, and TOML."""
