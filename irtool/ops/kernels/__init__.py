"""What operators compute: a module per family, with its stanzas in `table`. `factorization` and `windows` are shared by families."""
