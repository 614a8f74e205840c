# SPDX-License-Identifier: Apache-2.0
#
# Everything here needs Go, make, git and a C compiler (for the race detector), and nothing else: what a target uses,
# it fetches and builds. GOFLAGS is left as it is found. Builds say -buildvcs=false, because git refuses to describe a
# clone that another user owns, and then go build fails.

GO      ?= go
GOBUILD  = $(GO) build -buildvcs=false

# The local cluster tells clients that it is Kubernetes 1.37.1; what the linker must know for that stands in one file.
UPSTREAM_LDFLAGS = $(shell cat localcluster/ldflags.txt)

# The release before the one that is matched, which localcluster can run, too.
PREVIOUS = 1.36

MODULES = . localcluster conformance kubescheduler
# Outside go.work: what they require must not move the versions of the others.
MODULES_APART = deploy/test tools

# make up ARGS="--nodes 500"
ARGS ?=
# make conformance N=1000 SEED=7
N    ?= 50000
SEED ?= 1
# make image IMAGE=registry.example/kumiki VERSION=v1
IMAGE   ?= kumiki
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
# make soak DURATION=5m RATE=100
DURATION ?= 30m
RATE     ?= 200
# make fuzz FUZZTIME=1m
FUZZTIME ?= 10s
# make bench BENCH=Scan COUNT=5
BENCH ?= .
COUNT ?= 1
# make scheduler-perf LABELS=performance FILES='^misc'
LABELS ?= integration-test
FILES  ?= .
# make restart NODES=500 PODS=5000
NODES ?= 5000
PODS  ?= 50000

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-21s %s\n", $$1, $$2 }' Makefile

.PHONY: up
up: ## a cluster with fake nodes on this machine, scheduled by kumiki (ARGS="--nodes 500")
	@GO="$(GO)" $(GO) run -buildvcs=false ./internal/build/first
	@KUMIKI_LOCALCLUSTER_BINARY="$${KUMIKI_LOCALCLUSTER_BINARY:-$(CURDIR)/bin/kumiki-localcluster}" bin/kumiki up $(ARGS)

.PHONY: test
test: ## all tests of all modules, cheap ones first
	@GO="$(GO)" MAKE="$(MAKE)" sh tools/test.sh

.PHONY: build
build: kumiki localcluster ## bin/kumiki and bin/kumiki-localcluster

.PHONY: kumiki
kumiki: # it tells its clients and its metrics the version that it stands in for
	$(GOBUILD) -ldflags "$(UPSTREAM_LDFLAGS)" -o bin/kumiki ./cmd/kumiki

.PHONY: localcluster
localcluster: # as internal/testcluster builds it, so that neither builds again what the other has built
	GOWORK=off $(GO) -C localcluster build -buildvcs=false -ldflags "$(UPSTREAM_LDFLAGS)" -o ../bin/kumiki-localcluster .

.PHONY: conformance-upstream
conformance-upstream: ## bin/kube-scheduler: upstream's, to measure against
	$(GOBUILD) -ldflags "$(UPSTREAM_LDFLAGS)" -o bin/kube-scheduler ./conformance/cmd/kube-scheduler

.PHONY: kube-scheduler-previous
kube-scheduler-previous: ## bin/kube-scheduler-1.36: upstream's of the release before, to measure against
	GOWORK=off $(GO) -C localcluster build -buildvcs=false -modfile=go-$(PREVIOUS).mod \
		-ldflags "$(shell cat localcluster/ldflags-$(PREVIOUS).txt)" -o ../bin/kube-scheduler-$(PREVIOUS) \
		k8s.io/kubernetes/cmd/kube-scheduler

# What goes into an image is built outside the workspace, whose other modules must not move its versions, and without
# paths and cgo: the same commit gives the same bytes.
.PHONY: image
image: ## out/image: images for amd64 and arm64 with bills of materials (IMAGE=registry.example/kumiki VERSION=v1)
	@mkdir -p out/image
	GOWORK=off $(GO) -C tools build -buildvcs=false -o ../bin/image ./image
	@for a in amd64 arm64; do \
		echo "building for linux/$$a" >&2; \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$a GOWORK=off $(GOBUILD) -trimpath -ldflags "$(UPSTREAM_LDFLAGS) -X github.com/kumiki-scheduler/kumiki/app/command.version=$(VERSION)" \
			-o out/image/linux-$$a/kumiki ./cmd/kumiki || exit 1; \
	done
	@bin/image build --name $(IMAGE) --version $(VERSION) --revision "$$(git rev-parse HEAD 2>/dev/null)" \
		--created "$$(git log -1 --format=%ct 2>/dev/null || echo 0)" --licence LICENSE --out out/image \
		--binary linux/amd64=out/image/linux-amd64/kumiki --binary linux/arm64=out/image/linux-arm64/kumiki
	@bin/image check out/image/$(notdir $(IMAGE)).oci.tar version

# make release VERSION=v0.1.0 RELEASE_URL=https://downloads.example/v0.1.0 PLATFORMS=linux/amd64
RELEASE_URL ?=
SOURCE_URL  ?=
BUILDER     ?= pkg:generic/unidentified-builder
PLATFORMS   ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
.PHONY: release
release: ## out/release: all files of a release (VERSION=v0.1.0 RELEASE_URL=https://... PLATFORMS="linux/amd64"); see docs/contributing/release.md
	GOWORK=off $(GO) -C tools build -buildvcs=false -o ../bin/image ./image
	GOWORK=off $(GO) -C tools build -buildvcs=false -o ../bin/release ./release
	@rm -rf out/release
	@bin/release build --version "$(VERSION)" --revision "$$(git rev-parse HEAD 2>/dev/null)" \
		--created "$$(git log -1 --format=%ct 2>/dev/null || echo 0)" --url "$(RELEASE_URL)" --source-url "$(SOURCE_URL)" \
		--builder "$(BUILDER)" --platforms "$(PLATFORMS)" --out out/release
	@bin/release verify out/release

.PHONY: release-check
release-check: ## build a release of the commit twice, in two directories, and compare all bytes (VERSION=v0.1.0 PLATFORMS="linux/amd64")
	@GO="$(GO)" MAKE="$(MAKE)" sh tools/release-check.sh "$(VERSION)" "$(PLATFORMS)"

.PHONY: lint
lint: ## vet and staticcheck on all modules, the rules of internal/lint (formatting is one)
	GOWORK=off $(GO) -C tools build -buildvcs=false -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	@bad=0; \
	for m in $(MODULES); do \
		echo "==> vet $$m"; $(GO) -C $$m vet ./... || bad=1; \
		echo "==> staticcheck $$m"; (cd $$m && "$(CURDIR)/bin/staticcheck" ./...) || bad=1; \
	done; \
	for m in $(MODULES_APART); do \
		echo "==> vet and staticcheck $$m"; GOWORK=off $(GO) -C $$m vet ./... || bad=1; \
		(cd $$m && GOWORK=off "$(CURDIR)/bin/staticcheck" ./...) || bad=1; \
	done; \
	echo "==> vet the tests that need the release before"; $(GO) vet -tags previous ./internal/e2e || bad=1; \
	echo "==> vet the tests beside other components"; $(GO) vet -tags ecosystem ./internal/ecosystem ./internal/learntest || bad=1; \
	echo "==> vet the recorder of the dashboard's metrics"; GOWORK=off $(GO) -C deploy/test vet -tags record . || bad=1; \
	echo "==> rules"; $(GO) test ./internal/lint || bad=1; \
	if [ $$bad = 0 ]; then echo "lint ok"; else echo "lint FAILED"; exit 1; fi

# What does not depend on how a release reports things. TestPodGroupsEvict uses the types of the matched release.
CORE_E2E = TestPodsArePlacedAndTheRestHasTheReason|TestEveryPluginOnARealAPIServer|TestPreemptionOnARealAPIServer
CORE_E2E := $(CORE_E2E)|TestGangsAreEvictedWholeOnARealAPIServer|TestDeclarationsOfGangsOnARealAPIServer
CORE_E2E := $(CORE_E2E)|TestATakeOverLosesNothing|TestNothingIsLostWhenProcessesDieInABurst
CORE_E2E := $(CORE_E2E)|TestTheClusterIsUpgradedUnderLoad|TestAPodGroupOfAnOldVersionIsLeftBehind
.PHONY: localcluster-previous
localcluster-previous: ## a control plane of the release before, for kumiki up --kubernetes 1.36; some minutes the first time
	GOWORK=off $(GO) -C localcluster build -buildvcs=false -modfile=go-$(PREVIOUS).mod -tags=previous \
		-ldflags "$(shell cat localcluster/ldflags-$(PREVIOUS).txt)" -o ../bin/kumiki-localcluster-$(PREVIOUS) .

.PHONY: e2e-previous
e2e-previous: localcluster-previous ## the core scenarios on an API server of the release before
	KUMIKI_KUBERNETES=$(PREVIOUS) $(GO) test -count 1 -p 1 -timeout 30m -tags previous ./internal/e2e -run '^($(CORE_E2E))$$'

# Controllers of other projects beside kumiki: make ecosystem COMPONENTS="jobset lws". Each is a module below ecosystem/,
# outside go.work, so that its dependencies stay its own.
COMPONENTS ?= $(notdir $(patsubst %/go.mod,%,$(wildcard ecosystem/*/go.mod)))
SELECTED    = $(shell echo $(COMPONENTS) | tr ' ' '|')
.PHONY: ecosystem
ecosystem: build ## other projects' controllers beside kumiki, and the pages of docs/tasks that run them (COMPONENTS="jobset lws")
	$(GO) test -count 1 -p 1 -timeout 60m -tags ecosystem ./internal/ecosystem -run '^Test(?i:$(SELECTED))'
	$(GO) test -count 1 -p 1 -timeout 60m -tags ecosystem ./internal/learntest -run '^TestPagesWithComponents$$/^($(SELECTED))$$'

.PHONY: component
component: build ## bin/component, and the controller of another project that it runs beside a local cluster (COMPONENT=jobset)
	@test -n "$(COMPONENT)" || { echo "make $@ COMPONENT=jobset" >&2; exit 2; }
	$(GOBUILD) -o bin/component ./internal/ecosystem/cmd/component
	bin/component build $(COMPONENT)

.PHONY: plugins
plugins: localcluster ## plugins of kube-scheduler's framework in kumiki and in kube-scheduler: sigs.k8s.io/scheduler-plugins and the example
	@GO="$(GO)" sh tools/plugins.sh

# make seam PKG="plugins bind" TESTS=Permit
PKG   ?= plugins
TESTS ?= .
.PHONY: seam
seam: localcluster ## upstream's integration tests of the scheduler against kumiki; the first build takes minutes (PKG="plugins bind" TESTS=Permit)
	@GO="$(GO)" sh tools/seam.sh "$(PKG)" "$(TESTS)"

.PHONY: controllers-off
controllers-off: ## turn off each controller of the local cluster in turn: its scenario must fail; about 20 minutes
	$(GO) -C localcluster test -count 1 -timeout 60m -v -tags controllersoff . -run '^TestScenariosNeedTheirControllers$$'

.PHONY: architecture
architecture: ## write the diagram of packages in docs/architecture.md
	$(GO) run ./internal/lint/architecture

.PHONY: race
race: ## the tests of the root module and the local cluster under the race detector
	$(GO) test -race -p 1 -timeout 30m ./...
	$(GO) -C localcluster test -race -p 1 -timeout 30m ./...

.PHONY: cover
cover: ## out/cover.html: which lines of the root module its own tests reach, without those that need a cluster
	@mkdir -p out
	$(GO) test -coverpkg=./... -coverprofile=out/cover.out $$(GO="$(GO)" sh tools/test.sh --list-fast)
	$(GO) tool cover -html=out/cover.out -o out/cover.html
	@$(GO) tool cover -func=out/cover.out | tail -n 1
	@echo "see out/cover.html"

# make next-release VERSION=1.37.1 ARGS="-tables metrics -o yaml"
.PHONY: next-release
next-release: ## what changed upstream between the release that is matched and VERSION (FROM=1.36.3 ARGS="-tables gates")
	@GOWORK=off $(GO) -C tools build -buildvcs=false -o ../bin/nextrelease ./nextrelease
	@bin/nextrelease -from "$${FROM:-$$($(GO) -C conformance list -m -f '{{.Version}}' k8s.io/kubernetes)}" -to "$(VERSION)" $(ARGS)

.PHONY: docs
docs: ## out/site: the documentation as static pages with search, which open offline
	@GOWORK=off $(GO) -C tools build -buildvcs=false -o ../bin/site ./site
	@bin/site --out out/site

.PHONY: recordings-of-commands
recordings-of-commands: build ## docs/img: record the commands of docs/img/*.script again, as cast and SVG
	@GOWORK=off $(GO) -C tools build -buildvcs=false -o ../bin/cast ./cast
	bin/cast --title "Why does my gang wait, and what would help?" --to docs/img/why-gang docs/img/why-gang.script

.PHONY: bench
bench: ## go benchmarks of the core and the edge, into out/bench.txt (BENCH=regexp COUNT=n)
	@mkdir -p out
	@{ $(GO) version; git log -1 --format='commit %H'; \
		$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -p 1 ./core/... ./host/... ./kube/...; echo $$? > out/bench.code; } | tee out/bench.txt
	@exit $$(cat out/bench.code)

.PHONY: bench-basic
bench-basic: build conformance-upstream ## 10,000 plain pods on 5,000 nodes: kumiki, kube-scheduler and a null binder (ARGS="--runs 5")
	bin/kumiki bench basic $(ARGS)

# make bench-table ARGS="--match spread --runs 1", and after an interrupt ARGS=--resume
.PHONY: bench-table
bench-table: build conformance-upstream ## the comparison table, families of workloads x schedulers, in hours (ARGS="--list" ARGS=--resume)
	bin/kumiki bench table --to out/bench/table.json $(ARGS)

.PHONY: bench-releases
bench-releases: build conformance-upstream kube-scheduler-previous ## five families: kumiki beside two releases of kube-scheduler (ARGS=--resume)
	bin/kumiki bench table --to out/bench/releases.json --runs 3 --match '^(basic|spread|teams-anti-affinity|volumes|preemption-beside)/' \
		--scheduler kumiki,kube-scheduler,./bin/kube-scheduler-$(PREVIOUS),null $(ARGS)

.PHONY: scheduler-perf
scheduler-perf: build ## upstream's workloads of scheduler_perf with LABELS, against kumiki (LABELS=performance FILES='^(dra|misc)')
	@GO="$(GO)" sh tools/scheduler-perf.sh "$(LABELS)" "$(FILES)"

.PHONY: bench-wire
bench-wire: kumiki conformance-upstream ## one scheduler's process on one core, with a stand-in of the API server on another (ARGS="--rate 1000")
	bin/kumiki bench wire $(ARGS)

.PHONY: bench-core
bench-core: ## scheduling alone, without an API server: kumiki beside upstream's own cycle (ARGS="--nodes 1000,5000 --runs 5 -o json")
	@$(GO) -C conformance build -buildvcs=false -o ../bin/corebench ./cmd/corebench
	@bin/corebench $(ARGS)

.PHONY: bench-core-plot
bench-core-plot: kumiki ## kumiki's core alone from 1,000 to 100,000 nodes: out/bench/core.json, docs/bench/core.svg and the table (ARGS="--runs 5")
	@mkdir -p out/bench
	bin/kumiki bench core --families '^basic$$|1000|^mixed|^spread by zone|^anti-affinity by host$$|^preferred affinity by host' $(ARGS) -o json > out/bench/core.json
	bin/kumiki bench core --from out/bench/core.json -o svg > docs/bench/core.svg
	bin/kumiki bench core --from out/bench/core.json

.PHONY: simulate-histories
simulate-histories: ## random histories of the simulated cluster with failures and kills; a failure is printed small; about two minutes (HISTORIES=20000 SEED=1)
	$(GO) test ./sim -run '^TestRandomHistories$$' -count 1 -timeout 60m -rapid.checks=$(HISTORIES) -rapid.seed=$(SEED)

.PHONY: bench-simulate
bench-simulate: ## the simulator: a million pods on 10,000 nodes, and ten schedulers, with a CPU profile of each; the cost of measuring
	@mkdir -p out/bench
	@for run in million ten-schedulers; do \
		$(GO) test -run '^$$' -bench "^BenchmarkSimulate$$/^$$run$$" -benchtime 1x -timeout 20m \
			-cpuprofile out/bench/simulate-$$run.pprof -o out/bench/simulate.test ./app/command && \
		$(GO) tool pprof -top -cum -nodecount 45 out/bench/simulate.test out/bench/simulate-$$run.pprof || exit 1; done
	@$(GO) test -run '^$$' -bench '^BenchmarkMeasuring$$' -count 5 ./sim
	@rm -f out/bench/simulate.test

.PHONY: restart
restart: build conformance-upstream ## kumiki and kube-scheduler started in a cluster of bound pods (NODES=5000 PODS=50000 ARGS="--runs 1 -o json")
	bin/kumiki bench restart --nodes $(NODES) --pods $(PODS) $(ARGS)

.PHONY: soak
soak: build conformance-upstream ## a long run under load, churn and faults (DURATION=30m RATE=200 ARGS="--seed 7 --scheduler kube-scheduler")
	@$(GOBUILD) -o bin/soak ./internal/reliability/cmd/soak
	@bin/soak --duration $(DURATION) --rate $(RATE) $(ARGS)

.PHONY: dashboard-record
dashboard-record: localcluster ## run kumiki with gangs and preemption for four minutes and record its metrics for the images
	GOWORK=off $(GO) -C deploy/test test -count 1 -timeout 20m -tags record -run RecordRun .

.PHONY: dashboard-images
dashboard-images: ## draw rows of the dashboard from the recorded metrics: docs/img/dashboard-*.svg
	@mkdir -p docs/img
	GOWORK=off $(GO) -C deploy/test test -count 1 -run ImagesAre . -update

.PHONY: incident
incident: ## stops the API server of a local cluster for 20 seconds under load; the bundle must name the cause and replay
	$(GO) test -count 1 -timeout 15m -tags incident ./app/command -run '^TestAnIncidentOfAStoppedAPIServer$$' -v

# make reliability CASES='B.*' ARGS="--runs 3 -o markdown"
CASES ?= .*
.PHONY: reliability
reliability: build conformance-upstream ## bad inputs and faults, for kumiki and for kube-scheduler (CASES='B.*' ARGS="--runs 3 -o markdown")
	@$(GOBUILD) -o bin/reliability ./internal/reliability/cmd/reliability
	@bin/reliability --cases '$(CASES)' $(ARGS)

.PHONY: profile-check
profile-check: SEEDS = 1,2,3
profile-check: SCHEDULERS = bin/kumiki,bin/kube-scheduler
profile-check: RESULTS = out/profile-check.jsonl
profile-check: build conformance-upstream ## inject bottlenecks on a local cluster and compare them with what kumiki profile why names; goes on after an abort (CAUSES='api.*' SEEDS=1 SCHEDULERS=bin/kumiki RESULTS=FILE)
	@$(GOBUILD) -o bin/profilecheck ./internal/profilecheck/cmd/profilecheck
	@bin/profilecheck --causes '$(CAUSES)' --seeds '$(SEEDS)' --schedulers '$(SCHEDULERS)' --results '$(RESULTS)' \
		--localcluster bin --ldflags "$(UPSTREAM_LDFLAGS)" $(ARGS)

.PHONY: profile-reanalyse
profile-reanalyse: SEEDS = 1,2,3
profile-reanalyse: RESULTS = out/profile-check.jsonl
profile-reanalyse: ## apply the rules of this version to profiles that make profile-check ARGS='--dir DIR' kept (DIR=DIR RESULTS=FILE SEEDS=1 CAUSES='api.*')
	@$(GOBUILD) -o bin/profilecheck ./internal/profilecheck/cmd/profilecheck
	@bin/profilecheck --reanalyse '$(DIR)' --causes '$(CAUSES)' --seeds '$(SEEDS)' --results '$(RESULTS)' $(ARGS)

.PHONY: quality
quality: ## measure placements on published traces and write docs/quality.md; goes on after an abort (TRACES=DIR SEEDS=42-51 LIMIT=4m SECTIONS='openb churn' ROWS=default COLUMNS=fgd AGAIN=1)
	$(GO) build -o bin/quality ./internal/quality
	$(GO) build -o bin/standalone ./conformance/cmd/standalone
	$(GO) test -c -o bin/optimum.test ./conformance/optimum
	@mkdir -p out/quality
	bin/quality --page --results out/quality/results.jsonl --upstream bin/standalone --optimum bin/optimum.test \
		--traces '$(TRACES)' --seeds $(or $(SEEDS),42-51) --limit $(or $(LIMIT),0) --rows '$(ROWS)' --columns '$(COLUMNS)' \
		$(if $(AGAIN),--again) $(SECTIONS) > out/quality/page.md
	mv out/quality/page.md docs/quality.md

.PHONY: simulate-check
simulate-check: NODES = 1000,5000
simulate-check: build ## record runs of the local cluster, predict others under a model that is fitted to them, and write the errors into docs/simulator.md; goes on after an abort (NODES=1000,5000 TRAIN=1 TEST=2 ARGS=--again)
	$(GO) build -o bin/fidelity ./internal/fidelity
	@mkdir -p out/fidelity
	bin/fidelity --localcluster bin --page docs/simulator.md --nodes '$(NODES)' \
		--train $(or $(TRAIN),1) --test $(or $(TEST),2) $(ARGS)

.PHONY: mutants
mutants: ## run the tests with each fault of testdata/faults put in; each must be detected (FAULTS=core/queue)
	$(GO) run ./internal/mutation/mutants $(FAULTS)

.PHONY: measures
measures: ## print how the code is structured: sizes, dependencies between files, bool parameters
	$(GO) run ./internal/measure

PLUGINS = $(addprefix core/plugins/,basic internal/nodematch packing podaffinity resources spread volumes) host/devices
.PHONY: mutants-conformance
mutants-conformance: ## count how many faults the comparison with kube-scheduler detects by itself; at least 75 percent
	$(GO) run ./internal/mutation/mutants -search '^TestFaultIsDetected$$' -in conformance/kumiki -least 75 $(or $(FAULTS),$(PLUGINS))

# Families of random histories that end with the liveness property, see docs/design/0008-liveness.md.
HISTORIES ?= 20000
FAMILIES   = NoHistoryBreaksTheEngine|StrangersAreMadeRoomFor|GangsAreBoundWholeOrNotAtAll|EvictionsHoldTheRules|EvictorsLand
FAMILIES  := $(FAMILIES)|EvictionsInUnitsHoldTheRules|GangsThatEvictLand|GroupsDoNotWaitInVain|EvictionsInSessionsHoldTheRules|ASessionIsOneMoment
FAMILIES  := $(FAMILIES)|BadDeclarationsHoldNothing
.PHONY: histories
histories: ## random histories of the engine, of each family (HISTORIES=20000 SEED=2); about 40 minutes
	$(GO) test ./core/engine -count 1 -timeout 4h -run '^Test($(FAMILIES))$$' -rapid.checks=$(HISTORIES) -rapid.seed=$(SEED) -v

.PHONY: properties
properties: CHECKS = 1000
properties: ## every property test with more random cases than make test draws; about an hour (CHECKS=1000 PACKAGES="./apm/bottleneck ./sim")
	@failed=; for p in $(or $(PACKAGES),$$(grep -rl --include='*_test.go' pgregory.net/rapid . | xargs -n 1 dirname | sort -u)); do \
		$(GO) test -count 1 -timeout 30m $$p -rapid.checks=$(CHECKS) || failed="$$failed $$p"; done; \
	if [ -n "$$failed" ]; then echo "properties failed in:$$failed" >&2; exit 1; fi

.PHONY: hosted-histories
hosted-histories: ## random histories with hosted plugins and restarts, replayed without the plugins (HOSTED=1000)
	$(GO) test ./app/command/tape -count 1 -timeout 1h -run '^TestHostedHistoriesReplay$$' -v -hosted.histories=$(or $(HOSTED),1000)

# The model of the protocol between instances, see docs/design/0015-instances.md. Each step of depth takes 4 times as long.
DEPTH ?= 9
.PHONY: instances-model
instances-model: ## every order of events between instances, to a depth, and random ones (DEPTH=9 HISTORIES=20000)
	$(GO) test ./core/shard -count 1 -timeout 8h -run '^TestModel' -v -model.depth=$(DEPTH) -model.histories=$(HISTORIES)

# Recordings of the engine show that a change of its structure changes no effect; see CONTRIBUTING.md. DIR is outside the repository.
DIR ?=
.PHONY: recordings-write
recordings-write: ## write recordings of the engine's effects (DIR=../recordings)
	@test -n "$(DIR)" || { echo "make $@ DIR=../recordings" >&2; exit 2; }
	$(GO) test ./core/engine -count 1 -run '^TestRecordings$$' -v -recordings '$(abspath $(DIR))' -write

.PHONY: recordings
recordings: ## compare the engine with recordings of an earlier commit (DIR=../recordings)
	@test -n "$(DIR)" || { echo "make $@ DIR=../recordings" >&2; exit 2; }
	$(GO) test ./core/engine -count 1 -run '^TestRecordings$$' -v -recordings '$(abspath $(DIR))'

.PHONY: upstream-patches
upstream-patches: ## the patches of docs/upstream apply to upstream's source, and their tests pass there
	@GO="$(GO)" sh tools/upstream-patches.sh

.PHONY: conformance
conformance: ## ask upstream's scheduler and kumiki the same N questions (N=50000 SEED=7)
	KUMIKI_CASES=$(N) KUMIKI_SEED=$(SEED) $(GO) -C conformance test -count 1 -timeout 24h -v -run Conformance ./...

.PHONY: conformance-plugins
conformance-plugins: ## compare random plugins of kube-scheduler's framework in both schedulers (N=20000 SEED=2)
	KUMIKI_CASES=$(N) KUMIKI_SEED=$(SEED) $(GO) -C conformance test -count 1 -timeout 24h -v ./framework

.PHONY: conformance-hosted
conformance-hosted: ## compare upstream's in-tree plugins, hosted, with native ones and with upstream (N=20000 SEED=2)
	KUMIKI_CASES=$(N) KUMIKI_SEED=$(SEED) $(GO) -C conformance test -count 1 -timeout 24h -v -run 'Hosted' ./hosted ./preempt

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME
	@GO="$(GO)" sh tools/fuzz.sh $(FUZZTIME)

.PHONY: clean
clean: ## remove what was built here (the caches of Go stay)
	rm -rf bin out
