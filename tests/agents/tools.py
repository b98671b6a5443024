"""The agents: how each is installed, pointed at the model, and asked to go on with a session."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

PACKAGES = {
    "codex": "@openai/codex@0.166.0",
    "claude": "@anthropic-ai/claude-code@2.1.325",
    "pi": "@mariozechner/pi-coding-agent@0.73.1",
    "goose": "@aaif/goose-acp@1.50.0",
    "opencode": "opencode-ai@1.18.33",
    "gemini": "@google/gemini-cli@0.61.0",
    "qwen": "@qwen-code/qwen-code@0.24.4",
    "copilot": "@github/copilot@1.0.102",
    "cline": "cline@3.0.65",
    "aider": "aider-chat==0.86.2",
}

# Agents whose database has to be there before somebody adds a session to it.
SEEDED = ("goose", "opencode")

# Agents whose files Goose reads, too.
READ_BY_GOOSE = ("codex", "claude", "pi")

QUIET = {
    "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost", "DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_ERROR_REPORTING": "1",
    "NO_COLOR": "1", "CI": "1", "TERM": "dumb", "IS_SANDBOX": "1",
}


class Missing(Exception):
    """Something that is not here, and without which an agent cannot be tried."""


def program(cache, agent):
    return cache / "aider/bin/aider" if agent == "aider" else cache / agent / "node_modules/.bin" / agent


def install(cache, agent):
    """Installs an agent unless it is there. Says what is missing otherwise."""
    if program(cache, agent).exists():
        return
    package = PACKAGES[agent]
    if agent == "aider":
        python = shutil.which("python3.12") or shutil.which("python3.11") or shutil.which("python3.10")
        if not python:
            raise Missing("aider needs Python 3.10, 3.11 or 3.12")
        steps = [[python, "-m", "venv", str(cache / "aider")], [str(cache / "aider/bin/pip"), "install", "-q", package]]
    elif shutil.which("npm"):
        folder = cache / agent
        folder.mkdir(parents=True, exist_ok=True)
        steps = [["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", package]]
    else:
        raise Missing("there is no npm")
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason was given"]
            raise Missing(f"{package} could not be installed: {lines[-1]}")


def surroundings(cache, home):
    """The environment of an agent: nothing of the user's own."""
    keep = ("PATH", "LANG", "SHELL", "TMPDIR", "SSL_CERT_FILE")
    env = {name: os.environ[name] for name in keep if name in os.environ}
    node = cache / "node22/node_modules/node/bin"
    if node.exists():
        env["PATH"] = f"{node}:{env.get('PATH', '')}"
    return {**env, **QUIET, "HOME": str(home)}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def point(cache, agent, home, url):
    """Points an agent at the model: its settings in `home`, and its environment, which is given back."""
    env = surroundings(cache, home)
    key = "sk-none"
    if agent == "codex":
        write(home / ".codex/config.toml", "\n".join([
            'model = "gpt-5"', 'model_provider = "fake"', 'approval_policy = "never"', 'sandbox_mode = "danger-full-access"',
            "check_for_update_on_startup = false", "[analytics]", "enabled = false", "[model_providers.fake]",
            'name = "fake"', f'base_url = "{url}/v1"', 'env_key = "HERE_KEY"', 'wire_api = "responses"',
            "supports_websockets = false", "stream_max_retries = 0", "request_max_retries = 0", ""]))
        env["HERE_KEY"] = key
    elif agent == "claude":
        env.update(ANTHROPIC_BASE_URL=url, ANTHROPIC_API_KEY=key)
    elif agent == "pi":
        model = {"id": "fake-model", "name": "here", "reasoning": True, "input": ["text", "image"], "contextWindow": 200000,
                 "maxTokens": 8192, "cost": {"input": 1, "output": 1, "cacheRead": 1, "cacheWrite": 1}}
        provider = {"baseUrl": url, "apiKey": key, "api": "anthropic-messages", "models": [model]}
        write(home / ".pi/agent/models.json", json.dumps({"providers": {"fake": provider}}))
        env.update(PI_SKIP_VERSION_CHECK="1", PI_OFFLINE="1", PI_TELEMETRY="0")
    elif agent == "goose":
        write(home / ".config/goose/config.yaml", "GOOSE_TELEMETRY_ENABLED: false\nGOOSE_MODE: auto\n")
        env.update(GOOSE_PROVIDER="openai", GOOSE_MODEL="gpt-4o", OPENAI_API_KEY=key, GOOSE_DISABLE_KEYRING="1",
                   OPENAI_HOST=url.rsplit("/", 1)[0], OPENAI_BASE_PATH=f"{url.rsplit('/', 1)[1]}/v1/chat/completions",
                   GOOSE_MODE="auto", GOOSE_TELEMETRY_ENABLED="false")
    elif agent == "opencode":
        model = {"name": "fake-model", "tool_call": True, "attachment": True, "limit": {"context": 200000, "output": 8192}}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "fake", "models": {"fake-model": model},
                    "options": {"baseURL": f"{url}/v1", "apiKey": key}}
        write(home / ".config/opencode/opencode.json", json.dumps({
            "autoupdate": False, "share": "disabled", "model": "fake/fake-model", "small_model": "fake/fake-model",
            "provider": {"fake": provider}, "permission": {"*": "allow"}}))
        env.update({f"OPENCODE_DISABLE_{what}": "1" for what in
                    ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")})
    elif agent == "gemini":
        write(home / ".gemini/settings.json", json.dumps({
            "security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": False},
            "general": {"disableAutoUpdate": True, "enableAutoUpdate": False, "sessionRetention": {"enabled": False}},
            "privacy": {"usageStatisticsEnabled": False}, "tools": {"sandbox": False}}))
        env.update(GEMINI_API_KEY=key, GOOGLE_GEMINI_BASE_URL=url, GEMINI_CLI_TRUST_WORKSPACE="true", NO_BROWSER="1")
    elif agent == "qwen":
        write(home / ".qwen/settings.json", json.dumps({
            "security": {"auth": {"selectedType": "openai"}}, "telemetry": {"enabled": False},
            "general": {"disableAutoUpdate": True, "enableAutoUpdate": False}, "privacy": {"usageStatisticsEnabled": False}}))
        env.update(OPENAI_API_KEY=key, OPENAI_BASE_URL=f"{url}/v1", OPENAI_MODEL="qwen3-coder-plus")
    elif agent == "copilot":
        env.update(COPILOT_OFFLINE="true", COPILOT_PROVIDER_BASE_URL=url, COPILOT_PROVIDER_TYPE="anthropic",
                   COPILOT_PROVIDER_API_KEY=key, COPILOT_MODEL="claude-sonnet-4")
    elif agent == "cline":
        if not shutil.which("tmux"):
            raise Missing("cline goes on with a session only in a terminal, and there is no tmux to give it one")
        env["CLINE_TELEMETRY_DISABLED"] = "1"
        words = [str(program(cache, agent)), "auth", "-p", "openai-compatible", "-k", key, "-m", "fake-model",
                 "-b", f"{url}/v1"]
        subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=90)
    elif agent == "aider":
        env.update(OPENAI_API_KEY=key, OPENAI_API_BASE=f"{url}/v1", AIDER_ANALYTICS="false",
                   LITELLM_LOCAL_MODEL_COST_MAP="True")
    return env


def words(cache, agent, session, path, prompt):
    """The command for one turn: of a session, or of a new one."""
    own = str(program(cache, agent))
    on = lambda *more: list(more) if session else []
    return {
        "codex": lambda: [own, "exec", "--json", "--skip-git-repo-check", *on("resume", session), prompt],
        "claude": lambda: [own, "-p", prompt, *on("--resume", session), "--model", "claude-sonnet-4-5",
                           "--dangerously-skip-permissions", "--output-format", "json"],
        "pi": lambda: [own, "-p", "--provider", "fake", "--model", "fake-model", *on("--session", path), prompt],
        "goose": lambda: [own, "run", *on("--session-id", session, "-r"), "-t", prompt],
        "opencode": lambda: [own, "run", *on("-s", session), "--format", "json", prompt],
        "gemini": lambda: [own, "-m", "gemini-2.5-pro", "--yolo", *on("-r", session), "-p", prompt],
        "qwen": lambda: [own, "--yolo", *on("-r", session), "-p", prompt],
        "copilot": lambda: [own, "-s", "--allow-all-tools", "--allow-all-paths", *on(f"--resume={session}"), "-p", prompt],
        "aider": lambda: [own, "--model", "openai/gpt-4o", "--no-analytics", "--no-check-update", "--no-show-model-warnings",
                          "--yes-always", "--no-pretty", "--no-stream", "--map-tokens", "0", "--no-show-release-notes",
                          *on("--restore-chat-history"), "--message", prompt],
    }[agent]()


def go_on(cache, agent, env, cwd, session, path, prompt, is_done):
    """One turn of a session in the real tool. Gives the end of what it said."""
    if agent == "cline":
        return go_on_in_terminal(cache, env, cwd, session, prompt, is_done)
    done = subprocess.run(words(cache, agent, session, path, prompt), env=env, cwd=cwd, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", timeout=180)
    return "\n".join((done.stdout + done.stderr).strip().splitlines()[-5:])


def go_on_in_terminal(cache, env, cwd, session, prompt, is_done):
    """The same in a terminal of a tmux server that is ours alone."""
    tmux = ["tmux", "-L", f"banyan-{os.getpid()}-{session[-8:]}", "-f", "/dev/null"]
    env = {name: value for name, value in env.items() if name not in ("CI", "NO_COLOR")} | {"TERM": "xterm-256color"}
    run = lambda *more: subprocess.run([*tmux, *more], env=env, cwd=cwd, capture_output=True, text=True)
    shown = lambda: run("capture-pane", "-p", "-t", "c").stdout
    run("new-session", "-d", "-s", "c", "-x", "160", "-y", "50", str(program(cache, "cline")), "--id", session)
    try:
        deadline = time.time() + 60
        last = None
        # It is ready for keys when it has drawn something, and nothing moves any more.
        while time.time() < deadline and (not (now := shown()).strip() or now != last):
            last = now
            time.sleep(1.5)
        run("send-keys", "-t", "c", "-l", prompt)
        time.sleep(1)
        run("send-keys", "-t", "c", "Enter")
        while time.time() < deadline and not is_done():
            time.sleep(0.5)
        return "\n".join(line for line in shown().splitlines() if line.strip())
    finally:
        run("kill-server")
        end_hub(Path(env["HOME"]))


def end_hub(home):
    """Ends the helper that cline leaves running, by the id that it wrote down."""
    try:
        os.kill(json.loads((home / ".cline/data/locks/hub/production.json").read_text())["pid"], 15)
    except (OSError, ValueError, KeyError):
        pass
