package aggregator

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"

	searchv1 "github.com/taskctl-dev/taskctl/aggregator/api/v1"
	"github.com/taskctl-dev/taskctl/aggregator/details"
	"github.com/taskctl-dev/taskctl/aggregator/openapi"
	"github.com/taskctl-dev/taskctl/aggregator/stored"
	"github.com/taskctl-dev/taskctl/aggregator/view"
)

const (
	// watchGrace is how long watches may take to end when the server stops;
	// without it a single open one would hold it for a minute.
	watchGrace = time.Second
	// shutdownTimeout is how long requests may take to end then. It is also
	// the limit of the library's own wait for idle connections.
	shutdownTimeout = 2 * time.Second
)

// serverOptions are what the generic API server is built from.
type serverOptions struct {
	options    Options
	parts      parts
	clients    *clients
	proxy      *frontProxy
	authorizer authorizer.Authorizer
	numbers    view.Numbers
	checks     []healthz.HealthChecker // what readiness means besides the server's own checks
}

// built is what newServer makes.
type built struct {
	*genericapiserver.GenericAPIServer
	// config has the serving info, which still lacks the listener.
	config *genericapiserver.Config
	// stored have relations, which have to be run before the server is ready,
	// as have kinds.
	stored []*stored.Served
	kinds  []*Served
}

// newServer builds the generic API server.
func newServer(o serverOptions) (*built, error) {
	scheme, err := newScheme(o.options.Kinds)
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme)
	config, err := newConfig(o, codecs)
	if err != nil {
		return nil, err
	}
	o.parts.scheme = scheme
	if o.options.Storage != nil {
		if o.parts.storage, err = store(*o.options.Storage, codecs, config); err != nil {
			return nil, err
		}
	}
	server, err := config.Complete(nil).New("taskctl-aggregator", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("build the API server: %w", err)
	}
	server.ShutdownTimeout = shutdownTimeout

	group := genericapiserver.NewDefaultAPIGroupInfo(searchv1.GroupName, scheme, metav1.ParameterCodec, codecs)
	group.NegotiatedSerializer = textSerializer{codecs}
	served, kept, err := resources(o.parts)
	if err != nil {
		return nil, err
	}
	kinds, err := addKinds(served, o.options.Kinds, Parts{
		Scheme: scheme, Storage: o.parts.storage, Config: o.options.Config, Authorizer: o.authorizer, Numbers: o.numbers,
	})
	if err != nil {
		return nil, err
	}
	group.VersionedResourcesStorageMap[searchv1.GroupVersion().Version] = served
	if err := server.InstallAPIGroup(&group); err != nil {
		return nil, fmt.Errorf("install the API group %s: %w", searchv1.GroupName, err)
	}
	return &built{server, config, kept, kinds}, nil
}

func newConfig(o serverOptions, codecs serializer.CodecFactory) (*genericapiserver.Config, error) {
	authentication, err := authentication(o.proxy, o.clients.kubernetes)
	if err != nil {
		return nil, err
	}
	definitions, err := newDefinitionScheme(o.options.Kinds)
	if err != nil {
		return nil, err
	}
	// The library would leave a queue behind for files that it can't load.
	if _, err := tls.LoadX509KeyPair(o.options.CertFile, o.options.KeyFile); err != nil {
		return nil, fmt.Errorf("load the serving certificate: %w", err)
	}
	certificate, err := dynamiccertificates.NewDynamicServingContentFromFiles("aggregator-serving", o.options.CertFile, o.options.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("load the serving certificate: %w", err)
	}

	config := genericapiserver.NewConfig(codecs)
	config.SecureServing = &genericapiserver.SecureServingInfo{
		Cert: certificate,
		// The controller behind it runs already; this hides that it could be
		// run, so that the server doesn't do it once more.
		ClientCA: struct {
			dynamiccertificates.CAContentProvider
		}{o.proxy},
	}
	config.Authentication = authentication
	config.Authorization.Authorizer = o.authorizer
	// The default checks include one of the log, which starts a goroutine that
	// never ends.
	config.HealthzChecks = []healthz.HealthChecker{healthz.PingHealthz}
	config.LivezChecks = []healthz.HealthChecker{healthz.PingHealthz}
	config.ReadyzChecks = append([]healthz.HealthChecker{healthz.PingHealthz}, o.checks...)
	// It must not be nil, and no hook of ours uses it.
	config.LoopbackClientConfig = &rest.Config{}
	// What discovery tells clients outside of the aggregation layer; the
	// address of the listener is not known yet.
	config.ExternalAddress = net.JoinHostPort(ServiceName+"."+DefaultNamespace+".svc", "443")
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.EnableProfiling = false
	config.ShutdownWatchTerminationGracePeriod = watchGrace
	// Fairness is left off: kube-apiserver has queued the request already, and
	// its metrics can be registered once in a process.
	config.FlowControl = nil

	config.AdmissionControl = newNamespaceCheck(o.clients.kubernetes)

	described := describe(openapi.GetOpenAPIDefinitions, o.options.Kinds)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(described, openapinamer.NewDefinitionNamer(definitions))
	config.OpenAPIConfig.Info.Title = "taskctl"
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(described, openapinamer.NewDefinitionNamer(definitions))
	config.OpenAPIV3Config.Info.Title = "taskctl"

	config.BuildHandlerChainFunc = func(api http.Handler, c *genericapiserver.Config) http.Handler {
		chain := genericapiserver.DefaultBuildHandlerChain(withRawBodies(api, codecs, c.MaxRequestBodyBytes), c)
		return withRunID(details.WithQuery(withNamedCreates(chain)), o.options.RunID)
	}
	return config, nil
}

// withRunID tells in every response, errors included, which run it comes from.
func withRunID(next http.Handler, runID string) http.Handler {
	if runID == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set(RunIDHeader, runID)
		next.ServeHTTP(w, request)
	})
}
