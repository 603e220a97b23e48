"""`python -m heapwright`: the command line."""

from heapwright._cli import program

if __name__ == "__main__":
    program()
