"""Score retrieval logs at document level."""
