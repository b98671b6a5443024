# The commands there are to know. `make help` lists them.

TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))

.PHONY: help run test lint bench soak fuzz

help: ## List the targets
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

run: ## Build, and serve a new, empty data directory on 127.0.0.1:7420
	cargo build --release --package banyan-cli
	@dir=$$(mktemp -d) && exec $(TARGET)/release/banyan serve --data "$$dir"

# The tests of banyan-cli have the command built before any test runs.
test: ## Run every test
	BANYAN_BIN=$(TARGET)/checked/banyan cargo test --profile checked --workspace --exclude banyan-bench

lint: ## Check formatting and lints
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- --deny warnings

bench: ## Measure against peers and write docs/benchmarks.md
	cargo run --release --package banyan-bench

soak: ## Crash for a long time, simulated and real (MINUTES=30)
	cargo build --release --package banyan-cli
	BANYAN_BIN=$(TARGET)/release/banyan BANYAN_SOAK_MINUTES=$${MINUTES:-30} \
		cargo test --release --package banyan-sim -- --ignored --nocapture --test-threads 1

fuzz: ## Fuzz the readers of untrusted bytes (SECONDS_EACH=60)
	./fuzz/run.sh $${SECONDS_EACH:-60}
