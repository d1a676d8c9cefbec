"""A package registry on 127.0.0.1 with one package, `tiny-dep`, for npm, pip and cargo. Prints its port."""

import base64
import hashlib
import http.server
import io
import json
import tarfile
import zipfile

NAME, VERSION = "tiny-dep", "1.0.0"


def tar_gz(folder, files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mode = len(text.encode()), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


def wheel():
    info = f"tiny_dep-{VERSION}.dist-info"
    files = {
        "tiny_dep.py": "ANSWER = 42\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return packed.getvalue()


def content(port):
    url = f"http://127.0.0.1:{port}"
    manifest = {"name": NAME, "version": VERSION, "main": "index.js"}
    npm = tar_gz("package", {"package.json": json.dumps(manifest), "index.js": "module.exports = 42;\n"})
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(npm).digest()).decode()
    dist = {"tarball": f"{url}/npm/{NAME}.tgz", "integrity": integrity}
    packument = {"name": NAME, "dist-tags": {"latest": VERSION}, "versions": {VERSION: {**manifest, "dist": dist}}}
    cargo_toml = f'[package]\nname = "{NAME}"\nversion = "{VERSION}"\nedition = "2021"\n'
    crate = tar_gz(f"{NAME}-{VERSION}", {"Cargo.toml": cargo_toml, "src/lib.rs": "pub const ANSWER: u8 = 42;\n"})
    entry = {"name": NAME, "vers": VERSION, "deps": [], "features": {}, "yanked": False}
    entry["cksum"] = hashlib.sha256(crate).hexdigest()
    file = f"tiny_dep-{VERSION}-py3-none-any.whl"
    return {
        f"/npm/{NAME}": json.dumps(packument).encode(),
        f"/npm/{NAME}.tgz": npm,
        f"/simple/{NAME}/": f'<a href="{url}/files/{file}">{file}</a>'.encode(),
        f"/files/{file}": wheel(),
        "/cargo/config.json": json.dumps({"dl": f"{url}/crates/{{crate}}.crate"}).encode(),
        f"/cargo/ti/ny/{NAME}": json.dumps(entry).encode() + b"\n",
        f"/crates/{NAME}.crate": crate,
    }


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.server.content.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Type", "text/html" if self.path.startswith("/simple") else "application/octet-stream")
        self.send_header("Cache-Control", "max-age=600")
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.content = content(server.server_address[1])
print(server.server_address[1], flush=True)
server.serve_forever()
