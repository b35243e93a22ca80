"""The contract: what tables, rows and ids must keep, and how what breaks it is told."""
