"""What ``pgmult FILE`` prints: its commands, and the words that a shell makes of one."""

import json
import shutil
import subprocess

BASH = shutil.which("bash")
FEW = ["--draws", "4", "--tune", "2", "--chains", "1", "--quiet"]


def commands_in(answer):
    """The suggested commands of each job, in what ``--json`` prints."""
    return {
        title: [row["command"] for row in section["rows"]]
        for title, section in json.loads(answer)["sections"].items()
        if title not in ("Columns", "Columns to check")
    }


def pasted(command, folder):
    """The words of a command as a shell hands them on."""
    script = f"pgmult() {{ printf '%s\\0' \"$@\"; }}\n{command}\n"
    done = subprocess.run(
        [BASH, "-c", script], capture_output=True, check=True, cwd=folder, timeout=30
    )
    assert not done.stderr
    return done.stdout.decode().split("\0")[:-1]
