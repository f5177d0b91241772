"""A pass and an operator for irtool."""
