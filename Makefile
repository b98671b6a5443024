# The commands there are to know. `make help` lists them.

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))

NPM := $(shell command -v npm)
CHROMIUM := $(or $(BANYAN_CHROMIUM),$(shell command -v chromium || command -v chromium-browser || command -v google-chrome))

.PHONY: help run console page browser test test-engine test-agents lint bench bench-large bench-against soak fuzz

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 13

run: page ## Build, and serve a new, empty data directory on 127.0.0.1:7420
	cargo build --release --package banyan-cli
	@dir=$$(mktemp -d) && exec $(TARGET)/release/banyan serve --data "$$dir"

console: console/dist/index.html ## Build the page that shows a session

console/dist/index.html: console/node_modules/.package-lock.json $(wildcard console/*.json console/*.mjs) $(shell find console/src -type f)
	cd console && npm run build

console/node_modules/.package-lock.json: console/package.json console/package-lock.json
	cd console && npm ci --ignore-scripts --no-audit --no-fund && touch node_modules/.package-lock.json

# The page is part of the server when it can be built, and nobody is left to wonder why it is missing.
ifdef NPM
page: console
else
page:
	@echo "The page that shows a session is left out, because there is no npm: install Node.js, and run 'make console'." >&2
endif

# Some tests look at the server with a browser. Only root is not asked before something is installed for everyone.
browser:
ifeq ($(CHROMIUM),)
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	fi || true
	@command -v chromium >/dev/null || echo "There is no Chromium, so tests that need one are skipped: install it by your system's package manager." >&2
endif

# The tests of banyan-cli have the command built before any test runs.
test: page browser ## Run every test
ifdef NPM
	cd console && npm test
endif
	BANYAN_BIN=$(TARGET)/checked/banyan cargo test --profile checked --workspace --exclude banyan-bench

# The bus scenarios on a real iii engine: III_ENGINE=/path/to/iii make test-engine
test-engine: ## Run the bus scenarios on the iii engine that III_ENGINE names
	@test -x "$(III_ENGINE)" || { echo "III_ENGINE must name the binary of an iii engine (github.com/iii-hq/iii)" >&2; exit 2; }
	cargo build --profile checked --package banyan-cli
	BANYAN_BIN=$(TARGET)/checked/banyan cargo test --profile checked --package banyan-iii --test bus

# AGENTS=codex,claude tries only these, both ways.
test-agents: ## Take sessions of every coding agent to every other, with the real tools
	cargo build --profile checked --package banyan-cli
	python3 tests/agents/matrix.py --banyan $(TARGET)/checked/banyan $(if $(AGENTS),--from $(AGENTS) --to $(AGENTS))

lint: ## Check formatting and lints
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- --deny warnings

bench: ## Measure against peers and write docs/benchmarks.md
	cargo build --release --package banyan-cli --package banyan-bench
	$(TARGET)/release/banyan-bench

bench-large: ## Measure opening after a kill and verifying with 10 GB (GIGABYTES=10); memory for all of it is needed
	cargo build --release --package banyan-cli --package banyan-bench
	BANYAN_BENCH_GIGABYTES=$${GIGABYTES:-10} $(TARGET)/release/banyan-bench recovery

# ROWS="append-writers message-page" runs these works only, QUICK=1 smaller sizes, ROUNDS=9 so many rounds.
bench-against: ## Compare the benchmarks with those of an earlier commit, REV, and fail if a row is slower
	@test -n "$(REV)" || { echo "name the commit to compare with: make bench-against REV=92d1b74" >&2; exit 2; }
	python3 -B bench/against_test.py
	python3 -B bench/against.py $(REV) $(ROWS) $(if $(QUICK),--quick) $(if $(ROUNDS),--rounds $(ROUNDS))

soak: ## Crash for a long time, simulated and real (MINUTES=30)
	cargo build --release --package banyan-cli
	BANYAN_BIN=$(TARGET)/release/banyan BANYAN_SOAK_MINUTES=$${MINUTES:-30} \
		cargo test --release --package banyan-sim -- --ignored --nocapture --test-threads 1

fuzz: ## Fuzz the readers of untrusted bytes (SECONDS_EACH=60)
	./fuzz/run.sh $${SECONDS_EACH:-60}
