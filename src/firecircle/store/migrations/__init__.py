"""Migrations of older databases; alembic runs the steps in order."""
