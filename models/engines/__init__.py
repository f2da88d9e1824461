"""Engines that search a model: each one file, each without knowledge of the others."""
