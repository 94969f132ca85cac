"""Worlds of thousands of locations, mapped from minimal memory banks."""
