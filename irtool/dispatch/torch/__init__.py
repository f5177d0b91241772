"""`irtool.torch`: torch's functions by torch's names, over irtool's tensors and layers."""
