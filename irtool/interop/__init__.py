"""Other formats: NumPy archives (`irtool.interop.npz`)."""
