# Hutch. Each goal says what it does and ends in a clear yes or no.
#
#   make                 build build/hutch and its helpers
#   make run             set up, build, start the service on ./state, and show a command through its API
#   make test            set up, build, and run every test, plain and with ASan and UBSan
#   make test-unit       unit tests and fuzz corpora        make test-integration   the real programs on the real kernel
#   make test-adversarial  every attack of `hutch attack`, plain and with ASan
#   make test-tsan       the gateway's unit tests and a daemon's with ThreadSanitizer
#   make test-fault      single system calls and allocations fail
#   make test-vm         unit, integration and adversarial tests on Debian's kernel with nothing but cgroup v2, in QEMU
#   make bench           measure against this machine's peers (make bench-peers installs them)
#   make fuzz            fuzz every parser (FUZZ_SECONDS each)
#   make lint            clang-format, clang-tidy, -fanalyzer, house rules
#   make install         into PREFIX (default /usr/local)

SHELL := /bin/bash
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
BUILD := build

.DEFAULT_GOAL := build
.PHONY: build setup setup-vm setup-contract run test test-unit test-integration test-adversarial test-tsan test-fault test-vm bench bench-peers fuzz lint install clean

setup:
	@tools/setup

setup-vm: | setup
	@tools/setup vm

setup-contract: | setup
	@tools/setup contract

build: | setup
	@test -f $(BUILD)/build.ninja || cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) > /dev/null
	@cmake --build --preset release
	@echo "yes: built $(BUILD)/hutch and $(BUILD)/hutch-init"

build-asan: | setup
	@test -f $(BUILD)/asan/build.ninja || cmake --preset asan > /dev/null
	@cmake --build --preset asan

build-tsan: | setup
	@test -f $(BUILD)/tsan/build.ninja || cmake --preset tsan > /dev/null
	@cmake --build --preset tsan

build-fuzz: | setup
	@test -f $(BUILD)/fuzz/build.ninja || cmake --preset fuzz > /dev/null
	@cmake --build --preset fuzz

run: build
	@tools/demo $(BUILD)

test: build build-asan setup-vm setup-contract
	@tools/test $(BUILD) $(BUILD)/asan

test-unit: build build-asan
	@tools/test --label 'unit|fuzz' $(BUILD) $(BUILD)/asan

test-integration: build setup-contract
	@tools/test --label integration $(BUILD)

test-adversarial: build build-asan
	@tools/test --label adversarial $(BUILD) $(BUILD)/asan

test-tsan: build-tsan
	@ctest --test-dir $(BUILD)/tsan --output-on-failure -R '^unit-gateway-|^integration-(engine|api_auth)$$'

test-fault: build
	@tools/test --label fault $(BUILD)

test-vm: build setup-vm
	@tools/test --label vm $(BUILD)

bench: build
	@cmake --build --preset release --target bench-tools
	@python3 tests/bench/run.py --build $(BUILD) --json $(BUILD)/bench.json --svg $(BUILD)/bench.svg $(BENCH_OPTIONS)

bench-peers: setup
	@python3 tests/bench/run.py --install-peers

fuzz: build-fuzz
	@tools/fuzz $(BUILD)/fuzz $(FUZZ_SECONDS)

lint: build
	@tools/lint $(BUILD)

install: build
	@cmake --install $(BUILD) --prefix $(PREFIX)
	@echo "yes: installed into $(PREFIX); try: hutch run -- echo hello"

clean:
	@rm -rf $(BUILD)
