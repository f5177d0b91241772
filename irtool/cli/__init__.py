"""The command line: parses options, calls the library, prints the results.

    commands            a module per subcommand
    show                output for people and programs
    main                the entry point; group: click's group, which loads a subcommand when it is called; command: options and arguments
    options             those that several subcommands share; converters: words to numbers and names; loading: `--load`
    console             the streams, colours and diagnostics; interrupt: Ctrl-C
    opener              what a FILE argument may be; inputs, constants_file: what commands run on; many: many files
    execution, traced, validating, conversion, test_command, opt      what several subcommands do
    exit_errors, error_codes, source_places, expected_diagnostics     errors
"""
