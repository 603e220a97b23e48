"""`python -m heapwright`: the command line."""

from heapwright.cli import main

if __name__ == "__main__":
    main()
