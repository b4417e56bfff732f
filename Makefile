# slidewin: `make help` lists the targets.

PORT ?= 6379
VECTORS ?= 2000000
MODULE := target/release/libslidewin.so

.DEFAULT_GOAL := help
.PHONY: help setup build run test test-matrix test-clients test-arm64 bench soak leaks fuzz bench-cluster lint
.PHONY: example-fastapi example-express dist test-dist

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing to build and test (apt-get, through sudo when not root)
	@scripts/setup

build: setup ## build the release library, target/release/libslidewin.so
	@cargo build --release --locked

run: build ## start a redis-server with the module in the foreground (PORT=6379)
	@scripts/run $(PORT) $(MODULE)

test: setup ## run all tests (SLIDEWIN_SERVER=/path/to/server for another server than redis-server)
	@cargo test --locked

test-matrix: setup ## run the suite on every Redis and Valkey that can be fetched (about 10 minutes)
	@scripts/test-matrix

test-arm64: setup ## run the suite on an arm64 redis-server and load arm64 packages (root, unless on arm64; 6 minutes)
	@scripts/setup dist && scripts/test-arm64

test-clients: build ## run the README's recipes and the examples with the real clients (needs Node.js 20)
	@scripts/clients python node go express limits django express-rate-limit nestjs-throttler test

example-fastapi: build ## run an API with rate limits on port 8000 (PORT=6379 for its redis-server, or REDIS_URL=)
	@scripts/clients python
	@scripts/run $(PORT) $(MODULE) fastapi

example-express: build ## the same with Express (needs Node.js 20)
	@scripts/clients express
	@scripts/run $(PORT) $(MODULE) express

dist: ## make the archive and the Debian package, in target/dist (ARCH=arm64 for arm64, as root)
	@scripts/setup dist && ARCH=$(ARCH) scripts/dist

test-dist: ## unpack and load what make dist makes, and build it again elsewhere to compare
	@scripts/setup dist && scripts/test-dist elsewhere

bench: setup ## compare with the recipe, Lua and the floors, twelve minutes (BENCH_SERVER=, BENCH_CELL=/path/to/libredis_cell.so)
	@$(if $(BENCH_SERVER),SLIDEWIN_SERVER=$(BENCH_SERVER)) SLIDEWIN_CELL=$(BENCH_CELL) \
		cargo test --release --locked --test suite bench::bench -- --ignored --exact --nocapture

soak: setup ## floods, giant logs and leaks at full size; prints a table (under 15 minutes)
	@cargo test --release --locked --test suite -- soak::soak packed::a_log_of_the_largest reserve::a_queue \
		--ignored --nocapture --test-threads 1

leaks: setup ## every outcome under valgrind
	@command -v valgrind >/dev/null || { echo 'slidewin: this needs valgrind' >&2; exit 1; }
	@scripts/fetch-servers target/servers redis-6.2
	@SLIDEWIN_SERVER=$(CURDIR)/target/servers/redis-6.2/server \
		cargo test --release --locked --test suite leaks::leaks -- --ignored --exact --nocapture

fuzz: setup ## millions of random argument vectors and packed logs over the wire (VECTORS=2000000)
	@SLIDEWIN_FUZZ=$(VECTORS) cargo test --release --locked --test suite fuzz:: -- --nocapture

bench-cluster: setup ## calls per second on one server and on three masters of this machine
	@cargo test --release --locked --test suite cluster::bench_cluster -- --ignored --nocapture

lint: setup ## check the format and the lints; warnings are errors
	@cargo fmt --check
	@cargo clippy --locked --all-targets -- -D warnings
	@RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --document-private-items --quiet
