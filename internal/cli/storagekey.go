package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	aggregatorv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	"github.com/taskctl-dev/taskctl/internal/datadir"
	operatorv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
	"github.com/taskctl-dev/taskctl/storage/kubekey"
)

// keyOf is the key that people mean by a resource and a name, and whether it is
// only the beginning of keys. A key itself begins with a slash.
func keyOf(place storePlace, namespace string, args []string) (key string, prefix bool, err error) {
	if strings.HasPrefix(args[0], "/") {
		if len(args) > 1 || namespace != "" {
			return "", false, usageError("a key stands alone: without a name, and without -n")
		}
		return args[0], strings.HasSuffix(args[0], "/"), nil
	}
	resource, name, named := args[0], "", len(args) == 2
	if named {
		name = args[1]
	} else {
		resource, name, named = strings.Cut(resource, "/")
	}
	found, err := findResource(place, resource)
	if err != nil {
		return "", false, err
	}
	if found.computed() {
		return "", false, usageError("%s are computed from others and stored nowhere", found.Resource)
	}
	switch {
	case !found.namespaced && namespace != "":
		return "", false, usageError("%s have no namespace: leave -n out", found.Resource)
	case found.namespaced && namespace == "" && named:
		namespace = "default"
	}
	if !named {
		prefix := kubekey.Prefix(found.Group, found.Resource)
		if namespace != "" {
			prefix += namespace + "/"
		}
		return prefix, true, nil
	}
	return kubekey.Of(found.Group, found.Resource, namespace, name), false, nil
}

// resource is a resource of the API.
type resource struct {
	schema.GroupResource
	namespaced bool
}

// computed says that the resource is a view of others.
func (r resource) computed() bool {
	return r.Group == aggregatorv1.GroupVersion().Group && slices.Contains([]string{"combinedtasks", "details"}, r.Resource)
}

// findResource asks the appliance's API server, if it runs; else it knows
// Kubernetes' own resources and ours, and takes RESOURCE.GROUP as it is.
func findResource(place storePlace, name string) (resource, error) {
	if place.running {
		if found, err := discovered(place.dataDir, name); err == nil {
			return found, nil
		} else if meta.IsNoMatchError(err) {
			return resource{}, fmt.Errorf("the appliance has no resource %q: see taskctl kubectl%s api-resources", name, place.nameFlag())
		}
		// The API server does not answer: what follows is the best there is.
	}
	plural, group, _ := strings.Cut(strings.ToLower(name), ".")
	for _, own := range ownResources() {
		if own.Resource == plural && (group == "" || group == own.Group) {
			return own, nil
		}
	}
	if group == "" {
		group = kubekey.BuiltInGroup(plural)
	}
	if group == "" {
		return resource{}, usageError("%q is not known while the appliance does not run: write RESOURCE.GROUP, or a key", name)
	}
	return resource{schema.GroupResource{Group: group, Resource: plural}, !clusterScoped(plural)}, nil
}

func ownResources() []resource {
	search := aggregatorv1.GroupVersion().Group
	return []resource{
		{schema.GroupResource{Group: operatorv1.GroupVersion().Group, Resource: "tasks"}, true},
		{schema.GroupResource{Group: search, Resource: "clustertasks"}, false},
		{schema.GroupResource{Group: search, Resource: "customtasks"}, true},
		{schema.GroupResource{Group: search, Resource: "combinedtasks"}, true},
		{schema.GroupResource{Group: search, Resource: "details"}, true},
	}
}

// clusterScoped says that a built-in resource has no namespace.
func clusterScoped(resource string) bool {
	switch resource {
	case "namespaces", "nodes", "persistentvolumes", "clusterroles", "clusterrolebindings", "customresourcedefinitions", "apiservices",
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
		"certificatesigningrequests", "clustertrustbundles", "flowschemas", "prioritylevelconfigurations", "storageversions",
		"ingressclasses", "ipaddresses", "servicecidrs", "runtimeclasses", "priorityclasses", "csidrivers", "csinodes", "storageclasses",
		"volumeattachments", "volumeattributesclasses", "storageversionmigrations", "deviceclasses", "devicetaintrules",
		"resourcepoolstatusrequests", "resourceslices":
		return true
	}
	return false
}

// discovered looks a resource up as kubectl does, short names included.
func discovered(dataDir, name string) (resource, error) {
	config, err := clientcmd.BuildConfigFromFlags("", datadir.Kubeconfig(dataDir))
	if err != nil {
		return resource{}, err
	}
	config.Timeout = askLimit
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return resource{}, err
	}
	cached := memory.NewMemCacheClient(client)
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil)
	full, groupResource := schema.ParseResourceArg(strings.ToLower(name))
	var kind schema.GroupVersionKind
	err = errors.New("no version")
	if full != nil {
		kind, err = mapper.KindFor(*full)
	}
	if err != nil {
		if kind, err = mapper.KindFor(groupResource.WithVersion("")); err != nil {
			return resource{}, err
		}
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return resource{}, err
	}
	return resource{mapping.Resource.GroupResource(), mapping.Scope.Name() == meta.RESTScopeNameNamespace}, nil
}
