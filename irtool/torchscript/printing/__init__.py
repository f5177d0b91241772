"""Graphs as TorchScript source that one reads."""
