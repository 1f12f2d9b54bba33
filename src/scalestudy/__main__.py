"""`python -m scalestudy`."""

from scalestudy.cli import main

if __name__ == "__main__":
    main()
