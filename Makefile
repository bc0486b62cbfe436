# Everything a developer of taskctl does is a target here; `make help` lists them.

GO        ?= go
BIN       := bin/taskctl
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo v0.0.0-unknown)
KUBE      := $(shell sed -n 's|^\tk8s.io/kubernetes ||p' go.mod)
KUBE_NUMS := $(subst ., ,$(patsubst v%,%,$(KUBE)))
COMPONENT := k8s.io/component-base/version
LDFLAGS   := -s -w \
	-X github.com/taskctl-dev/taskctl/internal/version.version=$(VERSION) \
	-X $(COMPONENT).gitVersion=$(KUBE) \
	-X $(COMPONENT).gitMajor=$(word 1,$(KUBE_NUMS)) \
	-X $(COMPONENT).gitMinor=$(word 2,$(KUBE_NUMS)) \
	-X $(COMPONENT).gitTreeState=clean

CONTROLLER_GEN := $(GO) run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0
OPENAPI_GEN    := $(GO) run k8s.io/kube-openapi/cmd/openapi-gen
STATICCHECK    := $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: help build up down test test-short bench lint generate clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

build: ## build bin/taskctl
	$(GO) build -ldflags "$(LDFLAGS)" -o $(BIN) .

up: build ## build, start the appliance in the background, seed the demo
	$(BIN) up --detach
	$(BIN) demo
	@echo
	@echo "The program is $(abspath $(BIN)); stop the appliance with: make down"

down: ## stop the appliance; its data stays
	$(BIN) down

test: build ## run every test and print what ran and what was left out
	test/run

test-short: ## run the unit tests
	test/run short

bench: build ## measure against the alternatives, write docs/benchmarks.md
	bench/run

lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$unformatted" ] || { echo "gofmt: $$unformatted"; exit 1; }
	$(GO) vet ./...
	$(STATICCHECK) ./...

generate: ## generate deepcopy functions, CRDs and OpenAPI definitions
	$(GO) generate ./...

clean: ## remove what was built
	rm -rf bin
