"""Scores as text, tables and documents."""
