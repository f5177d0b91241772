"""`python -m irtool`."""
try:
    from irtool.cli.main import main

    code = main()
except KeyboardInterrupt:       # before anybody listened for it
    code = 130
raise SystemExit(code)
