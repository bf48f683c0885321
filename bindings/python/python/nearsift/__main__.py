"""`python -m nearsift` is the program."""

from nearsift._program import main

main()
