"""`python -m irtool`."""
from irtool.cli.main import main

raise SystemExit(main())
