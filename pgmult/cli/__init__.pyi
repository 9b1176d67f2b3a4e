from pgmult.cli.commands import main as main
