"""How is hookcheck started where its script is not on the path? By ``python -m hookcheck``."""

from hookcheck.cli import main

if __name__ == "__main__":
    main(prog_name="hookcheck")
