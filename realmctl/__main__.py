"""`python -P -m realmctl`: how child processes are started, so that no foreign `stages/` folder can shadow ours."""

from realmctl.cli import main

if __name__ == "__main__":
    main()
