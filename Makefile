# Targets that people use; `make` lists them. Needs Go, make, git and gcc, and for two tests openssl and python3; everything else is built from Go modules.

SHELL := /bin/bash
GO ?= go
FLEET ?= manifests/samples/fleet.yaml
CONFIG ?=
SIZE ?= full
SOAK ?= 1h
HISTORIES ?= 20000
FUZZ_TIME ?= 5m
TEST_FLAGS ?=
PKG ?=
RUN ?=
N ?=

KUBERNETES_VERSION := v1.37.1
KWOK_VERSION := v0.8.0
COMMIT := $(shell git rev-parse HEAD 2>/dev/null)
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)

KUBERNETES_TOOLS := bin/kube-apiserver bin/kube-controller-manager bin/kubectl
# The packages that make mutants changes, and those whose tests are to notice.
MUTATED := $(addprefix ./pkg/,book lifecycle budget topology resolver forecast group reconcile)
NOTICING := ./pkg/... ./cmd/... $(if $(wildcard test/story),./test/story/...)
TOOLS := bin/etcd $(KUBERNETES_TOOLS) bin/kwok bin/jobset-controller bin/lws-controller
GENERATORS := bin/controller-gen

# kube-scheduler's library takes the feature gates' defaults from the Kubernetes version that is stamped here.
KUBERNETES_STAMP := -X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help build tools test story zoo flakes mutants cover-real test-race test-page test-alerts fuzz soak measure campaign lint bench generate drift demo up down clean

help: ## List the targets.
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

build: ## Build bin/jobtree-scheduler and bin/kubectl-runs.
	@echo 'Building bin/jobtree-scheduler and bin/kubectl-runs.'
	@$(GO) build -ldflags '$(KUBERNETES_STAMP) -X k8s.io/component-base/version.gitCommit=$(COMMIT)' -o bin/jobtree-scheduler ./cmd/scheduler
	@$(GO) build -ldflags '-X k8s.io/component-base/version.gitVersion=$(VERSION)' -o bin/kubectl-runs ./cmd/kubectl-runs
	@for name in kubectl-jobtree kubectl_complete-runs kubectl_complete-jobtree; do ln -sf kubectl-runs bin/$$name; done

tools: announce $(TOOLS) ## Build etcd, the Kubernetes control plane, kubectl, kwok and the controllers of JobSets and LeaderWorkerSets into bin/.

# Of single packages only those with scenarios need the tools.
test: $(if $(filter-out ./cmd% ./pkg% ./test/story%,$(or $(PKG),all)),tools build) ## Run all tests, or those of PKG, of which RUN names some. TEST_FLAGS adds flags to go test.
	@GO=$(GO) PKG='$(PKG)' RUN='$(value RUN)' PATH="$(CURDIR)/bin:$$PATH" hack/test.sh $(TEST_FLAGS)

flakes: tools build ## Run the scenarios N times (default 20) alone and N beside two busy loops; a second call goes on. PKG, RUN choose.
	@PATH="$(CURDIR)/bin:$$PATH" GO=$(GO) $(GO) run ./test/flakes -n $(or $(N),20) -packages '$(or $(PKG),./test/integration)' \
	  -run '$(value RUN)' -state "$$(hack/state.sh)"

test-race: tools build ## Play twenty scenarios with a scheduler that looks for data races.
	@$(GO) build -race -ldflags '$(KUBERNETES_STAMP)' -o bin/race/jobtree-scheduler ./cmd/scheduler
	GO=$(GO) PATH="$(CURDIR)/bin:$$PATH" hack/test-race.sh

mutants: $(if $(REAL),tools build) ## Draw N (150) small changes of the code with SEED (1), see whether tests notice. REAL=1: scenarios too. BEFORE=FILE compares.
	@cd tools/mutants && PATH="$(CURDIR)/bin:$$PATH" GO=$(GO) $(GO) run . -state "$$(../../hack/state.sh)" \
	  -n $(or $(N),150) -seed $(or $(SEED),1) -packages '$(or $(PKG),$(MUTATED))' -tests '$(or $(TESTS),$(NOTICING))' \
	  $(if $(REAL),-real -run '$(value RUN)' -ldflags '$(KUBERNETES_STAMP)') $(if $(BEFORE),-before '$(BEFORE)')

cover-real: tools build ## Measure what code the scenarios run, with UNITS=1 also the tests beside the code. BEFORE=FILE compares.
	@GO=$(GO) LDFLAGS='$(KUBERNETES_STAMP)' RUN='$(value RUN)' UNITS=$(UNITS) BEFORE='$(BEFORE)' PATH="$(CURDIR)/bin:$$PATH" \
	  hack/cover-real.sh

story: $(if $(REAL),tools build) ## Tell the stories of test/story. NAME=REGEXP chooses some, REAL=1 tells them on a real control plane too.
	$(if $(REAL),PATH="$(CURDIR)/bin:$$PATH" JOBTREE_STORIES='$(or $(NAME),.)' $(GO) test ./test/integration -run '^TestStoriesAgree$$' -v -timeout 30m,$(GO) test ./test/story -run '^TestStories$$/^($(or $(NAME),.))')

zoo: tools build ## Tell what workloads of people's kinds go through on a real control plane. NAME=REGEXP chooses some.
	PATH="$(CURDIR)/bin:$$PATH" JOBTREE_ZOO='$(or $(NAME),.)' $(GO) test ./test/integration -run '^TestZoo$$' -v -timeout 90m

soak: tools build ## Kill the scheduler, lose nodes and crowd the fleet for SOAK (default 1h) each; about a thousand kills an hour.
	GO=$(GO) SOAK=$(SOAK) PATH="$(CURDIR)/bin:$$PATH" hack/soak.sh

measure: tools build ## Print what each scenario takes: time, processor time, waits, limits. RUN=REGEXP plays some only.
	PATH="$(CURDIR)/bin:$$PATH" $(GO) run ./test/measure -run '$(RUN)'

campaign: ## Let HISTORIES (default 20000) random histories of each kind happen to the book.
	GO=$(GO) HISTORIES=$(HISTORIES) hack/campaign.sh

test-page: tools build bin/controlplane ## Test the dashboard in a real browser (Chromium). UPDATE=1 writes the images that docs show.
	hack/test-page.sh $(if $(UPDATE),-update)

test-alerts: ## Test the alerts for Prometheus with promtool.
	GO=$(GO) hack/test-alerts.sh

fuzz: ## Run every fuzz target for FUZZ_TIME, 5 minutes unless it is given.
	GO=$(GO) FUZZ_TIME=$(FUZZ_TIME) hack/fuzz.sh

lint: ## Check formatting, vet, and the house rules.
	GO=$(GO) hack/lint.sh

bench: tools build ## Measure against the stock scheduler. SIZE=tiny takes two minutes, CASE=NAME runs one case.
	PATH="$(CURDIR)/bin:$$PATH" $(GO) run ./test/perf -size $(SIZE) $(if $(CASE),-case '$(CASE)')

generate: $(GENERATORS) ## Write the generated files: CRDs, deepcopy functions, the references of the API and the CLI.
	GO=$(GO) hack/generate.sh

drift: $(GENERATORS) ## Fail if a generated file is not what `make generate` writes.
	GO=$(GO) hack/drift.sh

demo: tools build ## Show it at work on a fleet of its own, check the outcome, clean up. PAGE=1 shows it in a browser.
	@$(GO) run ./test/demo $(if $(PAGE),-page)

up: tools build bin/controlplane ## Leave a local control plane running. FLEET=FILE|empty, CONFIG=FILE replace the samples. JOBSET=1: with JobSets.
	@bin/controlplane -fleet '$(FLEET)' -config '$(CONFIG)' $(if $(JOBSET),-jobset) up

down: bin/controlplane ## End what `make up` started, also after a crash.
	@bin/controlplane down

clean: down ## End what runs and delete what was built.
	rm -rf bin .local bench logs

.PHONY: bin/controlplane
bin/controlplane:
	@$(GO) build -o $@ ./test/controlplane/cmd/controlplane

.PHONY: announce
announce:
	@for tool in $(TOOLS); do [ -e $$tool ] || { \
	  echo 'Building etcd, Kubernetes, kwok and the controllers of JobSets and LeaderWorkerSets from source, once: about 12 minutes on 2 cores.'; \
	  break; }; done

# A tool is built in a module of its own, so that its dependencies never mix with ours, and again when that changes.
$(KUBERNETES_TOOLS): bin/%: tools/kubernetes/go.mod tools/kubernetes/go.sum
	cd tools/kubernetes && $(GO) build -ldflags '$(KUBERNETES_STAMP)' -o ../../$@ k8s.io/kubernetes/cmd/$*
	@touch $@

bin/etcd: tools/etcd/go.mod tools/etcd/go.sum
	cd tools/etcd && $(GO) build -o ../../$@ go.etcd.io/etcd/server/v3
	@touch $@

bin/kwok: tools/kwok/main.go tools/kwok/go.mod tools/kwok/go.sum
	cd tools/kwok && $(GO) build -ldflags '-X sigs.k8s.io/kwok/pkg/consts.Version=$(KWOK_VERSION)' -o ../../$@ .
	@touch $@

# Its CustomResourceDefinition and the registration of its webhooks go beside it, into bin/jobset, as its module has them.
bin/jobset-controller: tools/operators/go.mod tools/operators/go.sum
	cd tools/operators && $(GO) build -o ../../$@ sigs.k8s.io/jobset
	@rm -rf bin/jobset && mkdir bin/jobset
	@cd "$$(cd tools/operators && $(GO) list -m -f '{{.Dir}}' sigs.k8s.io/jobset)/config/components" && \
	  cp -r --no-preserve=mode crd webhook '$(CURDIR)/bin/jobset'
	@touch $@

bin/lws-controller: tools/operators/go.mod tools/operators/go.sum
	cd tools/operators && $(GO) build -o ../../$@ sigs.k8s.io/lws/cmd
	@rm -rf bin/lws && mkdir bin/lws
	@cd "$$(cd tools/operators && $(GO) list -m -f '{{.Dir}}' sigs.k8s.io/lws)/config" && \
	  cp -r --no-preserve=mode crd webhook '$(CURDIR)/bin/lws'
	@touch $@

bin/controller-gen: tools/codegen/go.mod tools/codegen/go.sum
	cd tools/codegen && $(GO) build -o ../../$@ sigs.k8s.io/controller-tools/cmd/controller-gen
	@touch $@
