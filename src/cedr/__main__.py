"""`python -m cedr` is the command line."""

from cedr.cli import main

if __name__ == "__main__":
    main()
