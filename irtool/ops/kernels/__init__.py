"""What operators compute: a module per family, with its stanzas in `table`. `c_numbers`, `factorization` and `windows` are shared by
families."""
