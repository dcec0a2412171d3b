"""`python -m service.cli`: the command `counterfoil`."""

from service.cli.app import main

main()
