# The words people type. Each line calls cargo or xtask; what they mean is told in CONTRIBUTING.md.
.PHONY: run fast test fmt lint tidy simulate loom miri bench-storage bench-document bench-server bench-index bench-query bench-check

# The server, with its page at the URL that it prints; sample data is a click there. `make run ARGS="storage stat DIR"` runs another command.
run:
	cargo run --release -p jackdaw-cli -- $(or $(ARGS),serve)

# Quick tests: under a minute once built.
fast:
	cargo xtask test --fast

# Everything that must pass before a change is good. The tests come last: their last line is the count.
test:
	cargo fmt --all --check
	$(MAKE) --no-print-directory lint tidy loom
	cargo xtask test --clients

fmt:
	cargo fmt --all

lint:
	cargo clippy --all-targets -- -D warnings

tidy:
	cargo xtask tidy

# Random histories of the storage engine on a disk that fails and loses power: SEEDS=1000000 (10,000), FIRST=n; SEED=n replays one and
# tells each step.
simulate:
	cargo run --release -q -p jackdaw-storage --example simulate -- $(if $(SEEDS),--seeds $(SEEDS)) \
	    $(if $(FIRST),--first $(FIRST)) $(if $(SEED),--seed $(SEED))

# The lock-free parts under a model checker: every interleaving, every value the memory model allows.
loom:
	RUSTFLAGS="--cfg loom" CARGO_PROFILE_RELEASE_LTO=off cargo test --release -p jackdaw-storage --lib --target-dir target/loom snapshot::loom_tests

# Heads of keys and the journal's differences, and the unsafe parts of documents that printing and reading use, under Miri, which finds undefined behaviour. Needs a nightly
# toolchain with the component miri; minutes.
miri:
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p jackdaw-storage --lib --target-dir target/miri -- \
	    page::head journal::changes journal::aligned heap::state
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p jackdaw-document --lib --target-dir target/miri -- \
	    simd::tests::s text::append etag::tests::decimal text::number::tests::malformed

# Storage engines on the same work, ours and the peers: a table, and JSON lines in OUT. All of these are optional:
#   QUICK=1            a tenth of the items: a few minutes
#   FULL=1             the large workloads too: hours
#   RUNS=5             how often each measurement is made (3)
#   PEERS=lmdb,redb    these peers instead of all; `none` compiles no other engine
#   ENGINES=fjall      just these engines, without ours
#   WORKLOADS=w1,w3-1g just these workloads
#   DIR=/mnt/disk/x    where the stores are made (bench-data)
#   OUT=file           where the JSON lines go (standard output)
#   FEATURES=rocksdb   compile RocksDB too: half an hour, needs libclang
bench-storage:
	cargo run --release -q -p $(if $(filter none,$(PEERS)),jackdaw-bench,jackdaw-bench-peers) \
	    $(if $(FEATURES),--features $(FEATURES)) -- storage --runs $(or $(RUNS),3) --dir $(or $(DIR),bench-data) \
	    $(if $(QUICK),--quick) $(if $(FULL),--full) $(if $(OUT),--out $(OUT)) \
	    $(if $(WORKLOADS),--workloads $(WORKLOADS)) \
	    $(if $(ENGINES),--engines $(ENGINES),$(if $(filter-out none,$(PEERS)),--engines jackdaw$(comma)$(PEERS)))

# Documents against other ways to hold JSON, on your own files: DATA=dir of NAME.ndjson.gz and json/NAME.json.gz; OUT, QUICK=1 and PEERS=a,b as
# above (make puts what is set on its command line into the environment, where the program finds it).
bench-document:
	cargo run --release -q -p jackdaw-bench-document -- $(WORKLOADS)

# The server through HTTP. WORKLOADS=put-1,get-32 (see bench/README.md), OUT, QUICK=1 and RUNS as above. A peer that speaks the same protocol is measured
# in the same run: PEER="shell command with {port} and {dir}", or PEER_ADDRESS=host:port with PEER_PID=n for one that runs already. DATA=dir of
# NAME.ndjson.gz for bulk-NAME, DOCS=1000000 documents to read.
bench-server:
	cargo build --release -q -p jackdaw-cli -p jackdaw-bench-server
	target/release/jackdaw-bench-server run --runs $(or $(RUNS),3) --docs $(or $(DOCS),1000000) $(if $(QUICK),--quick) \
	    $(if $(WORKLOADS),--workloads $(WORKLOADS)) $(if $(OUT),--out $(OUT)) $(if $(DATA),--data $(DATA)) \
	    $(if $(PEER),--peer-command '$(PEER)') $(if $(PEER_ADDRESS),--peer-address $(PEER_ADDRESS)) $(if $(PEER_PID),--peer-pid $(PEER_PID))

# Indexes and queries over real documents through HTTP, beside a peer as above: DATA=dir of NAME.ndjson.gz, WORKLOADS=Users/Search or exact,page, OUT, QUICK=1, RUNS.
bench-index bench-query: bench-%:
	cargo build --release -q -p jackdaw-cli -p jackdaw-bench-server
	target/release/jackdaw-bench-server $* --runs $(or $(RUNS),3) $(if $(QUICK),--quick) $(if $(DATA),--data $(DATA)) \
	    $(if $(WORKLOADS),--workloads $(WORKLOADS)) $(if $(OUT),--out $(OUT)) \
	    $(if $(PEER),--peer-command '$(PEER)') $(if $(PEER_ADDRESS),--peer-address $(PEER_ADDRESS)) $(if $(PEER_PID),--peer-pid $(PEER_PID))

comma := ,

# The benchmark programs are no default members: what `test` does for the rest, for them.
bench-check:
	cargo clippy -p jackdaw-bench -p jackdaw-bench-peers -p jackdaw-bench-server --all-targets -- -D warnings
	cargo xtask test -p jackdaw-bench
