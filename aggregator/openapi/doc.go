// Package openapi holds the OpenAPI definitions of the aggregated API's types
// and of all that they refer to, generated from their comments.
//
// The generator takes whole packages, and core/v1 is a large one of which only
// the Event is needed, so what nothing refers to is trimmed again.
package openapi

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object:headerFile=/dev/null paths=../api/...
//go:generate go run k8s.io/kube-openapi/cmd/openapi-gen@v0.0.0-20260721132016-d427ff9ee9ad --go-header-file=/dev/null --report-filename=/dev/null --output-dir=. --output-pkg=github.com/taskctl-dev/taskctl/aggregator/openapi --output-file=zz_generated.openapi.go --output-model-name-file=zz_generated.model_name.go --readonly-pkg=k8s.io/api/core/v1,k8s.io/apimachinery/pkg/api/resource,k8s.io/apimachinery/pkg/apis/meta/v1,k8s.io/apimachinery/pkg/runtime,k8s.io/apimachinery/pkg/version ../api/v1 ../../operator/api/v1 k8s.io/api/core/v1 k8s.io/apimachinery/pkg/api/resource k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/version
//go:generate go run ./trim zz_generated.openapi.go k8s.io/api/core/v1 k8s.io/apimachinery/pkg/api/resource
