"""The published contracts, as JSON Schemas (2020-12)."""
