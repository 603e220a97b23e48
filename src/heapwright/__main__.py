"""`python -m heapwright`: the command line."""

from heapwright.cli import main

main()
