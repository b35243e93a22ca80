"""Files, frames and streams -> the tables."""
