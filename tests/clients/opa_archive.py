"""Archives that opa-archive writes, and what its own rules say of archives that others wrote.

    opa_archive.py write FOLDER     writes some of every kind, signed ones if it can
    opa_archive.py judge FILE       reads FILE by the rules of the package and the format; fails when it breaks one
"""

import json
import sys
import uuid
import zipfile
from datetime import datetime
from pathlib import Path

import opa
from opa.archive import _validate_path

PNG = bytes.fromhex("89504e470d0a1a0a") + b"picture"


def session():
    history = opa.SessionHistory(session_id="0b8a4a2e-6f5d-4a3e-9b1d-0123456789ab")
    history.add_system("You are careful.")
    history.add_user("Plain, ünïcode ✓", timestamp="2026-03-01T10:00:00Z")
    history.add_user([
        opa.ContentBlock.text("Look"),
        opa.ContentBlock.image("session/attachments/image.png"),
        opa.ContentBlock.file("session/attachments/report.pdf", "application/pdf"),
    ])
    history.add_assistant([opa.ContentBlock.tool_use("t1", "read_csv", {"limit": 10})])
    history.add_tool([opa.ContentBlock.tool_result("t1", "a,b")])
    history.add_assistant("Done.")
    return history


def full():
    manifest = opa.Manifest(
        title="A title that is long enough to be folded, with ünïcode ✓ in it, over and over",
        execution_mode=opa.ExecutionMode.BATCH,
        schema_extensions=["https://example.com/ext/v1"],
        extra={"X-Own": "value"},
    )
    archive = opa.OpaArchive(manifest=manifest, prompt=opa.Prompt("Summarise `data/x.csv` for {{agent}}."))
    archive.set_session(session())
    archive.add_data_bytes("session/attachments/image.png", PNG)
    archive.add_data_bytes("session/attachments/report.pdf", b"%PDF-1.4 report")
    archive.add_data_bytes("data/x.csv", b"1,2")
    index = opa.DataIndex()
    index.add("data/x.csv", description="numbers", content_type="text/csv")
    archive.set_data_index(index)
    archive.add_extension_file("mine/config.json", b"{}")
    return archive


def write(folder):
    folder.joinpath("plain.opa").write_bytes(opa.OpaArchive(prompt=opa.Prompt("Hello")).to_bytes())
    full().write(str(folder / "full.opa"))
    for kind in ("rsa", "ec"):
        try:
            key = opa.generate_signing_key(key_type=kind)
            certificate = opa.generate_self_signed_cert(key)
            signed = opa.Signer(private_key=key, certificate=certificate).sign_bytes(full().to_bytes())
        except Exception as error:
            print(f"no archive is signed with {kind}: {error}")
            continue
        folder.joinpath(f"signed-{kind}.opa").write_bytes(signed)


def block(fields):
    fields = dict(fields)
    return opa.ContentBlock(fields.pop("type"), **fields)


def judge(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None, "an entry is damaged"
        names = archive.namelist()
        assert len(names) == len(set(names)), "a name is there twice"
        for name in names:
            _validate_path(name)
        lines = archive.read("META-INF/MANIFEST.MF").split(b"\r\n")
        assert all(len(line) <= 72 for line in lines), "a line is too long"
        main = b"\r\n".join(lines).split(b"\r\n\r\n")[0].replace(b"\r\n ", b"").decode().split("\r\n")
        attributes = dict(line.split(": ", 1) for line in main)
        assert attributes["Manifest-Version"] == "1.0"
        assert attributes["OPA-Version"] == "0.1"
        opa.ExecutionMode(attributes["Execution-Mode"])
        prompt = opa.Prompt(archive.read(attributes["Prompt-File"]).decode())
        assert prompt.content.strip(), "the prompt is empty"
        history = json.loads(archive.read(attributes["Session-File"]))
        assert history["opa_version"] == "0.1"
        assert str(uuid.UUID(history["session_id"])) == history["session_id"]
        for field in ("created_at", "updated_at"):
            datetime.fromisoformat(history[field].replace("Z", "+00:00"))
        for message in history["messages"]:
            content = message["content"]
            blocks = [] if isinstance(content, str) else [block(one) for one in content]
            opa.Message(message["role"], content if isinstance(content, str) else blocks)
            assert isinstance(message["id"], str)
            datetime.fromisoformat(message["timestamp"].replace("Z", "+00:00"))
            for one in blocks:
                if one.type in ("image", "file"):
                    assert one.data["source"]["type"] == "attachment"
                    assert one.data["source"]["path"] in names, "an attachment is missing"
    print(f"{len(names)} entries, {len(history['messages'])} messages")


{"write": write, "judge": judge}[sys.argv[1]](Path(sys.argv[2]))
