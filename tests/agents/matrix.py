"""Sessions of every agent go on in every agent: the real tools, against a model of our own.

    matrix.py --banyan PATH [--from a,b] [--to a,b] [--cache DIR] [--jobs N] [--keep]

For each pair: a genuine session of the first agent is imported, `banyan resume --in` writes it for the second one, and that tool is
asked to go on. The pair holds if one request to the model has everything that was said and every result, in order, and then the new
question; and if the turn comes back into the same session with the next import. What is written for Codex, Claude Code and pi is
also read by `goose session import`, which has code of its own for their files. An agent that cannot be had here is left out, aloud.
Exit: 0 all pairs hold, 1 some do not, 3 nothing could be tried.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tools
from model import REPLY, Model

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parent.parent / "crates/banyan-agents/tests/fixtures"
PROMPT = "Please carry on from here."
# So many seconds an agent may take to write down what it was asked.
WRITTEN = 15


class Store:
    """A data directory."""

    def __init__(self, banyan, folder):
        self.banyan, self.folder = str(Path(banyan).resolve()), folder

    def copy(self, folder):
        """The same sessions once more, so that pairs do not meet."""
        shutil.copytree(self.folder / "data", folder / "data")
        return Store(self.banyan, folder)

    def run(self, *words, home=None, cwd=None):
        env = {**{k: v for k, v in os.environ.items() if not k.startswith(("BANYAN_", "XDG_"))},
               "HOME": str(home or self.folder), "BANYAN_DATA": str(self.folder / "data")}
        for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "PI_CODING_AGENT_DIR", "COPILOT_HOME", "GOOSE_PATH_ROOT"):
            env.pop(name, None)
        done = subprocess.run([self.banyan, *words], env=env, cwd=cwd or self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"banyan {' '.join(words)}: {done.stderr.strip()}")
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def plain(text):
    """A text as it is compared, whatever tools do to blanks. Some put results into JSON once more."""
    return " ".join(text.replace("\\n", " ").replace('\\"', '"').split())


def squeezed(text):
    """What is compared of a text: its beginning."""
    return plain(text)[:160].rstrip()


def said(store, session):
    """What the active path says since it was last compacted: texts, and lists of results that may come in any order."""
    wanted = []
    for item in store.run("show", session, "--json"):
        message = item.get("message") or {}
        role, content = message.get("role"), message.get("content") or []
        texts = [block["text"] for block in content if block.get("type") == "text" and block["text"].strip()]
        if role == "custom" and message.get("custom_type") == "compaction":
            wanted = []
        elif role in ("user", "assistant"):
            wanted += texts
        elif role == "function_result":
            if wanted and isinstance(wanted[-1], list):
                wanted[-1] += texts
            elif texts:
                wanted.append(texts)
    return wanted


def is_compacted(store, session):
    messages = [item.get("message") or {} for item in store.run("show", session, "--json")]
    return any(message.get("custom_type") == "compaction" for message in messages)


def strings(value):
    """The texts of a request in the order in which they are read."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        # What a message says comes before what it calls.
        for key in sorted(value, key=lambda key: key in ("tool_calls", "tool_use_id", "tool_call_id", "call_id")):
            yield from strings(value[key])


def missing(wanted, request):
    """The first text that a request does not have, in order; none if it has all. And how many it has."""
    history = [request.get(key) for key in ("input", "messages", "contents")]
    text = plain(" ".join(strings(history)))
    place = 0
    for held, want in enumerate(wanted):
        end = place
        for one in want if isinstance(want, list) else [want]:
            at = text.find(squeezed(one), place)
            if at < 0:
                return one, held
            end = max(end, at + 1)
        place = end
    return None, len(wanted)


def sources(store, agents):
    """Imports the genuine sessions, and picks one of each agent: the longest that is whole."""
    picked = {}
    for agent in agents:
        copy = store.folder / f"from-{agent}"
        shutil.copytree(FIXTURES / agent, copy)
        store.run("import", str(copy), "--json")
        found = [meta for meta in store.run("ls", "--json", "--all", "--meta", f"agent={agent}")
                 if not (meta.get("metadata") or {}).get("parent_session_id")]
        if found:
            # What was said before a compaction is not sent again, so a session without one proves more.
            whole = lambda meta: not is_compacted(store, meta["session_id"])
            picked[agent] = max(found, key=lambda meta: (whole(meta), meta["message_count"]))["session_id"]
    return picked


def repository(folder):
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("# Nothing much\n")
    for words in (["init", "-q", "-b", "main"], ["add", "-A"],
                  ["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "begin"],
                  ["config", "user.name", "t"], ["config", "user.email", "t@example.com"]):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    return folder.resolve()


def cell(store, model, cache, folder, source, session, agent):
    """One pair. Gives why it does not hold, or nothing."""
    home = folder / f"{source}-{agent}"
    cwd = repository(home / "work")
    store = store.copy(home)
    label = f"{source}-{agent}"
    env = tools.point(cache, agent, home, f"{model.url}/{label}")
    if agent in tools.SEEDED:
        subprocess.run(tools.words(cache, agent, "", "", "Hello."), env=env, cwd=cwd, stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=180)
    wanted = said(store, session)
    if agent == "aider":
        # It keeps what was said, and no results.
        wanted = [want for want in wanted if isinstance(want, str)]
    written = store.run("resume", session, "--in", agent, "--cwd", str(cwd), "--json", home=home, cwd=cwd)[0]
    whole = lambda: any(missing([*wanted, PROMPT], request)[0] is None for request in model.asked_under(label))
    told = tools.go_on(cache, agent, env, cwd, written["native_id"], written["paths"][0], PROMPT, whole)
    if not whole():
        asked = model.asked_under(label)
        best = max((missing([*wanted, PROMPT], request) for request in asked), key=lambda it: it[1], default=None)
        if best is None:
            return f"nothing was asked; it said: {told[-300:]}"
        return f"{best[1]} of {len(wanted) + 1} reached the model; missing or out of order: {squeezed(best[0])!r}"
    back = [agent] if agent != "aider" else [str(cwd)]
    # Some agents write behind the back of the process that was asked, and a moment later.
    until = time.monotonic() + WRITTEN
    while True:
        store.run("import", *back, "--yes", "--json", home=home, cwd=cwd)
        texts = [want for want in said(store, session) if isinstance(want, str)]
        if any(squeezed(PROMPT) in squeezed(text) for text in texts):
            return None
        if time.monotonic() > until:
            return "it went on, and the turn did not come back into the session"
        time.sleep(0.5)


def judged(store, cache, folder, source, session, agent):
    """What Goose reads in a file that was written for another agent, by code of its own. Gives what it misses, or nothing."""
    home = folder / f"{source}-{agent}-by-goose"
    home.mkdir()
    store = store.copy(home)
    written = store.run("export", session, "--to", agent, "-o", str(home / "written"), "--json")[0]
    goose = str(tools.program(cache, "goose"))

    def ask(*words):
        done = subprocess.run([goose, "session", *words], env=tools.surroundings(cache, home), cwd=home,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180)
        if done.returncode != 0:
            raise RuntimeError(f"goose session {words[0]}: {(done.stderr or done.stdout).strip()[-300:]}")
        return done.stdout

    taken = ask("import", written["paths"][0])
    found = re.search(r"^(\d{8}_\d+) - ", taken, re.MULTILINE)
    if not found:
        return f"Goose did not take it; it said: {taken[-300:]}"
    read = json.loads(ask("export", "--session-id", found[1], "--format", "json"))
    wanted = said(store, session)
    lost, held = missing(wanted, {"messages": read["conversation"]})
    return lost and f"Goose reads {held} of {len(wanted)} in it; missing or out of order: {squeezed(lost)!r}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--banyan", required=True)
    parser.add_argument("--from", dest="sources", default=",".join(tools.PACKAGES))
    parser.add_argument("--to", dest="targets", default=",".join(tools.PACKAGES))
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "banyan-agents"
    parser.add_argument("--cache", type=Path, default=Path(os.environ.get("BANYAN_AGENTS_CACHE") or default))
    parser.add_argument("--jobs", type=int, default=max(2, (os.cpu_count() or 2) // 2))
    parser.add_argument("--keep", action="store_true", help="keep the homes of the agents")
    args = parser.parse_args()
    cache = args.cache.resolve()
    targets = []
    for agent in args.targets.split(","):
        try:
            tools.install(cache, agent)
            targets.append(agent)
        except (tools.Missing, subprocess.TimeoutExpired) as why:
            print(f"LEFT OUT {agent}: {why}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="banyan-agents-"))
    store, model, bad, tried = Store(args.banyan, folder), Model(), 0, 0
    picked = sources(store, args.sources.split(","))
    for agent in args.sources.split(","):
        if agent not in picked:
            print(f"LEFT OUT from {agent}: none of its sessions was imported", flush=True)
            bad += 1
    with ThreadPoolExecutor(args.jobs) as pool:
        jobs = {}
        for source, session in picked.items():
            for agent in targets:
                jobs[source, agent] = pool.submit(cell, store, model, cache, folder, source, session, agent)
            for agent in targets if "goose" in targets else ():
                if agent in tools.READ_BY_GOOSE:
                    job = pool.submit(judged, store, cache, folder, source, session, agent)
                    jobs[source, f"{agent}, as Goose reads it"] = job
        for (source, agent), job in jobs.items():
            try:
                why = job.result()
            except tools.Missing as error:
                print(f"LEFT OUT {source} -> {agent}: {error}", flush=True)
                continue
            except Exception as error:  # Whatever goes wrong, the other pairs are tried.
                why = f"{type(error).__name__}: {error}"
            tried += 1
            bad += why is not None
            print(f"{'holds' if why is None else 'FAILS'}  {source:9} -> {agent:9} {why or ''}", flush=True)
    print(f"{tried} pairs tried, {bad} do not hold.", flush=True)
    if bad or args.keep:
        print(f"The homes are in {folder}.")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if bad else 0 if tried else 3


if __name__ == "__main__":
    sys.exit(main())
