"""What a job finds when it starts, whatever its daemon was started with, and as whom it runs."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import TestCase

from tests.system.harness import Daemon, require_root

PASSWD = """\
root:x:0:0:root:/root:/bin/sh
app:x:1001:1001:App:/home/app:/bin/dash
"""
GROUP = """\
root:x:0:
app:x:1001:
data:x:1002:app
"""
OWN_ACCOUNTS = (
    "unshare",
    "--mount",
    "/bin/sh",
    "-c",
    "mount --bind passwd /etc/passwd && mount --bind group /etc/group && "
    'umask 077 && ulimit -Sn 256 && exec 9<passwd && exec nohup "$@"',
    "sh",
)
"""Starts a daemon that has accounts of its own, and habits that its jobs are not to inherit."""

LOOK = """\
    command: |
      id -u; id -g; id -G | tr ' ' '\\n' | sort | tr '\\n' ' '; echo
      umask; ulimit -Sn; ulimit -Hn; pwd
      echo $HOME $USER $LOGNAME $SHELL
      ls /proc/self/fd | tr '\\n' ' '; echo
      readlink /proc/self/fd/0
      grep -E '^(SigBlk|SigIgn|CapEff)' /proc/self/status | tr -d '\\n'; echo
      cat secret 2>&1
    captureStdout: true
    streamPrefix: "{job_name}|"
"""
JOBS = {
    "root": "",
    "named": "    user: app\n",
    "numbered": "    user: 1001\n",
    "stranger": "    user: 12345\n    group: data\n",
    "grouped": "    group: data\n",
    "masked": "    user: app\n    umask: '027'\n    environment: [{key: HOME, value: /else}]\n",
}
NO_SIGNALS = "SigBlk:\t0000000000000000SigIgn:\t0000000000000000"


class IdentityTests(TestCase):
    """Daemons that run as root."""

    def setUp(self) -> None:
        require_root()

    def place(self) -> Path:
        """Return a directory with accounts and a file for one group, open to everybody."""
        place = Path(self.mktemp()).resolve()
        place.mkdir()
        for each in (place, *place.parents):
            if each.owner() == "root" and not each.stat().st_mode & 0o001:
                each.chmod(each.stat().st_mode | 0o011)
        (place / "passwd").write_text(PASSWD)
        (place / "group").write_text(GROUP)
        secret = place / "secret"
        secret.write_text("shared\n")
        import os

        os.chown(secret, 0, 1002)
        secret.chmod(0o640)
        return place

    async def found(self, daemon: Daemon, job: str) -> list[str]:
        """Return what C{job} has found, line by line."""
        self.assertTrue((await daemon.wait_for_end_of(job)).code in (0, 1), daemon.log)
        await daemon.wait_for_output(rf"^{job}\|shared")
        lines = [line for line in daemon.stdout if line.startswith(f"{job}|")]
        return [line.partition("|")[2].rstrip() for line in lines]

    async def test_users(self) -> None:
        """
        A job is its user with all the user's groups and none of root's, wherever it is looked up.

        Its streams are its only descriptors, its signals are at their defaults, limits are those
        that the daemon was given, and the umask is the daemon's unless the job has one.
        """
        jobs = "".join(
            f'  - name: {name}\n    schedule: "@reboot"\n{LOOK}{more}'
            for name, more in JOBS.items()
        )
        daemon = Daemon(
            self, "jobs:\n" + jobs, directory=self.place(), prefix=OWN_ACCOUNTS, env=ENVIRONMENT
        )
        where = str(daemon.directory)
        app = "/home/app app app /bin/dash"
        expected = {
            "root": ("0", "0", None, "0077", "/r root root /s", "shared"),
            "named": ("1001", "1001", "1001 1002", "0077", app, "shared"),
            "numbered": ("1001", "1001", "1001 1002", "0077", app, "shared"),
            "stranger": ("12345", "1002", "1002", "0077", None, "shared"),
            "grouped": ("0", "1002", "1002", "0077", None, "shared"),
            "masked": ("1001", "1001", "1001 1002", "0027", "/else app app /bin/dash", "shared"),
        }
        for job, (uid, gid, groups, umask, names, secret) in expected.items():
            lines = await self.found(daemon, job)
            self.assertEqual(lines[:2], [uid, gid], job)
            if groups is not None:
                self.assertEqual(lines[2], groups, job)
            self.assertEqual(lines[3:5], [umask, "256"], job)
            self.assertNotEqual(lines[5], "256", job)
            self.assertEqual(lines[6], where, job)
            if names is not None:
                self.assertEqual(lines[7], names, job)
            # ls has the directory open itself.
            self.assertEqual(lines[8], "0 1 2 3", job)
            self.assertEqual(lines[9], "/dev/null", job)
            self.assertTrue(lines[10].startswith(NO_SIGNALS), lines[10])
            if uid != "0":
                self.assertTrue(lines[10].endswith("CapEff:\t0000000000000000"), lines[10])
            self.assertEqual(lines[11], secret, job)
        self.assertEqual(await daemon.stop(), 0)

    async def test_number_without_account(self) -> None:
        """A number that no account has needs a group, or it is an error of the configuration."""
        config = f'jobs:\n  - name: odd\n    schedule: "@reboot"\n{LOOK}    user: 12345\n'
        daemon = Daemon(self, config, directory=self.place(), prefix=OWN_ACCOUNTS)
        self.assertEqual(await daemon.wait_for_end(), 1)
        self.assertIn("Configuration error", daemon.log)
        self.assertIn("group", daemon.log)

    async def test_not_root(self) -> None:
        """A daemon that is not root refuses a configuration that names users."""
        place = self.place()
        (place / "config.yaml").write_text(
            f'jobs:\n  - name: other\n    schedule: "@reboot"\n{LOOK}    user: app\n'
        )
        place.chmod(0o777)
        prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        daemon = Daemon(self, args=["-c", "config.yaml"], directory=place, prefix=prefix)
        self.assertEqual(await daemon.wait_for_end(), 1)
        self.assertIn("Configuration error", daemon.log)
        self.assertIn("other", daemon.log)


ENVIRONMENT = {"HOME": "/r", "USER": "root", "LOGNAME": "root", "SHELL": "/s"}
