"""An environment for Harbor without containers: bubblewrap over the programs of this machine.

    harbor run -p adapters/samples/multi-step -a oracle -e adapters.harbor_bubblewrap:BubblewrapEnvironment

Images are not used. It is for tasks that need only what the machine has, and for tests of agents without Docker.
"""

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities

# What a task can write. Everything else is that of the machine, read-only.
FOLDERS = ("app", "tests", "solution", "logs", "installed-agent", "tmp", "home")
READABLE = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "etc", "opt", "root", "work", "var")


class BubblewrapEnvironment(BaseEnvironment):
    @staticmethod
    def type():
        return "bubblewrap"

    @property
    def capabilities(self):
        return EnvironmentCapabilities(disable_internet=True)

    def _validate_definition(self):
        if shutil.which("bwrap") is None:
            raise FileNotFoundError("bwrap is not on the PATH")

    async def start(self, force_build=False):
        self.state = Path(tempfile.mkdtemp(prefix="harbor-bubblewrap-"))
        for name in FOLDERS:
            (self.state / name).mkdir()
        for name in ("agent", "verifier", "artifacts"):
            (self.state / "logs" / name).mkdir()

    async def stop(self, delete=True):
        if delete:
            shutil.rmtree(self.state, ignore_errors=True)

    def on_host(self, path):
        """The file of this machine that a path in the environment is."""
        parts = Path(path).parts
        if len(parts) < 2 or parts[1] not in FOLDERS:
            raise PermissionError(f"{path} is read-only in this environment")
        return self.state.joinpath(*parts[1:])

    async def upload_file(self, source_path, target_path):
        target = self.on_host(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, target)

    async def upload_dir(self, source_dir, target_dir):
        shutil.copytree(source_dir, self.on_host(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path, target_path):
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.on_host(source_path), target_path)

    async def download_dir(self, source_dir, target_dir):
        shutil.copytree(self.on_host(source_dir), target_dir, dirs_exist_ok=True, symlinks=True)

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        words = ["bwrap", "--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-net", "--tmpfs", "/"]
        for name in READABLE:
            if os.path.exists(f"/{name}"):
                words += ["--ro-bind", f"/{name}", f"/{name}"]
        words += ["--dev", "/dev", "--proc", "/proc"]
        for name in FOLDERS:
            words += ["--bind", str(self.state / name), f"/{name}"]
        variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/home", "LANG": "C.UTF-8", **(env or {})}
        process = await asyncio.create_subprocess_exec(
            *words, "--chdir", cwd or "/app", "--", "bash", "-c", command,
            env=variables, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), timeout_sec)
        except asyncio.TimeoutError:
            process.kill()
            await process.communicate()
            raise
        return ExecResult(stdout=out.decode("utf-8", "replace"), stderr=err.decode("utf-8", "replace"), return_code=process.returncode)
