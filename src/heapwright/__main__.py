"""`python -m heapwright`: the command line."""

from heapwright.cli import program

if __name__ == "__main__":
    program()
