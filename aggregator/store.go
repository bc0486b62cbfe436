package aggregator

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	storagefactory "k8s.io/apiserver/pkg/storage/storagebackend/factory"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
)

// storagePrefix is kube-apiserver's own, so that routes of the store match by
// group and resource here too.
const storagePrefix = "/registry"

// store makes the ordinary etcd3 store behind the stored kinds, JSON like custom
// resources, with a watch cache. Readiness waits for it.
//
// EtcdOptions.ApplyTo does the same and replaces, for the whole process, who
// measures the size of the database, which is kube-apiserver's business.
func store(endpoint Endpoint, codecs serializer.CodecFactory, config *genericapiserver.Config) (generic.RESTOptionsGetter, error) {
	version := searchv1.GroupVersion()
	backend := storagebackend.NewDefaultConfig(storagePrefix, codecs.LegacyCodec(version))
	backend.EncodeVersioner = runtime.NewMultiGroupVersioner(version, schema.GroupKind{Group: searchv1.GroupName})
	backend.StorageObjectCountTracker = config.StorageObjectCountTracker
	backend.Transport = storagebackend.TransportConfig{
		ServerList:    []string{endpoint.URL},
		TrustedCAFile: endpoint.CAFile,
		CertFile:      endpoint.CertFile,
		KeyFile:       endpoint.KeyFile,
	}
	ready, err := storagefactory.CreateReadyCheck(*backend, config.DrainedNotify())
	if err != nil {
		return nil, fmt.Errorf("connect to the store: %w", err)
	}
	config.AddReadyzChecks(healthz.NamedCheck("store", func(*http.Request) error { return ready() }))
	options := genericoptions.NewEtcdOptions(backend)
	return options.CreateRESTOptionsGetter(&genericoptions.SimpleStorageFactory{StorageConfig: *backend}, nil), nil
}
