"""`python -P -m realmctl`: how child processes start, so that no foreign `stages/` can shadow ours."""

from realmctl.cli.app import main

if __name__ == "__main__":
    main()
