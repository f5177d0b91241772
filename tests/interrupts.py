"""A command of irtool that a test can interrupt."""
import sys

INTERRUPTIBLE = [sys.executable, "-c", "import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
                 "from irtool.cli.main import main\nsys.exit(main())"]
"""The beginning of a command line: processes in the background are often started with the signal ignored."""
