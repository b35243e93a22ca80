"""The measures: their registry, their formulas over counts, and the grammar of their names."""
