"""A package by another author."""
