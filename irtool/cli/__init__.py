"""The command line: one file per subcommand. It parses flags, calls the library, prints; no logic of its own."""
