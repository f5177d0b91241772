"""The command line, one file per subcommand: parses options, calls the library, prints the results."""
