# The words people type. Each line calls cargo or xtask; what they mean is told in CONTRIBUTING.md.
.PHONY: fast test fmt lint tidy

# Quick tests: under a minute once built.
fast:
	cargo xtask test --fast

# Everything that must pass before a change is good. The tests come last: their last line is the count.
test:
	cargo fmt --all --check
	$(MAKE) --no-print-directory lint tidy
	cargo xtask test

fmt:
	cargo fmt --all

lint:
	cargo clippy --all-targets -- -D warnings

tidy:
	cargo xtask tidy
