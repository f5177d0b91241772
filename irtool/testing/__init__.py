"""For tests, ours and users': comparing arrays (`irtool.testing.closeness`)."""
