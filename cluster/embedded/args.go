package embedded

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	kubeoptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// CheckArgs tells whether [APIServer.Args] may hold these flags, without
// starting anything: each must be a flag of kube-apiserver, not one that the
// appliance sets itself, and its value must parse. All that is wrong is told at
// once.
func CheckArgs(args map[string][]string) error {
	return applyArgs(kubeoptions.NewServerRunOptions(), args)
}

// applyArgs sets the user's flags on the options.
func applyArgs(o *kubeoptions.ServerRunOptions, args map[string][]string) error {
	if len(args) == 0 {
		return nil
	}
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	var errs []error
	for _, name := range sortedKeys(args) {
		if err := applyArg(flags, name, args[name]); err != nil {
			errs = append(errs, fmt.Errorf("cluster.apiServerArgs.%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func applyArg(flags *pflag.FlagSet, name string, values []string) error {
	if strings.HasPrefix(name, "-") {
		return fmt.Errorf("write the flag's name without dashes: %s", strings.TrimLeft(name, "-"))
	}
	if why := owned(name); why != "" {
		return fmt.Errorf("this flag is set by taskctl and can't be passed on: %s", why)
	}
	flag := flags.Lookup(name)
	if flag == nil {
		return fmt.Errorf("kube-apiserver %s has no such flag; https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/ lists them", Version)
	}
	if len(values) == 0 {
		return errors.New("it has no value")
	}
	if len(values) > 1 && slices.Contains(singleValued, flag.Value.Type()) {
		return fmt.Errorf("it takes one value (%s), not a list of %d", flag.Value.Type(), len(values))
	}
	for _, value := range values {
		if err := flags.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

// singleValued are the types of flags for which only the last of several
// values would count.
var singleValued = []string{"bool", "int", "int32", "int64", "uint", "uint32", "uint64", "float32", "float64", "duration", "string", "ip", "portRange"}

// owned tells why a flag is the appliance's own, or "" when it is not.
func owned(name string) string {
	for why, names := range map[string][]string{
		"where objects are stored is said by storage: in the configuration, or by --storage": {
			"etcd-servers", "etcd-servers-overrides", "etcd-prefix", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "storage-backend"},
		"the port is set by --port, and the address is always the loopback": {
			"secure-port", "bind-address", "advertise-address", "permit-port-sharing", "permit-address-sharing"},
		"its certificates and keys are made by taskctl, in the folder pki": {
			"cert-dir", "tls-cert-file", "tls-private-key-file", "client-ca-file",
			"requestheader-client-ca-file", "requestheader-allowed-names", "requestheader-username-headers",
			"requestheader-uid-headers", "requestheader-group-headers", "requestheader-extra-headers-prefix",
			"proxy-client-cert-file", "proxy-client-key-file",
			"service-account-key-file", "service-account-signing-key-file", "service-account-signing-endpoint"},
		"the operator and the aggregator rely on RBAC": {
			"authorization-mode", "authorization-config", "authorization-policy-file"},
		"the certificates and the aggregation layer rely on it": {
			"service-cluster-ip-range", "endpoint-reconciler-type", "apiserver-count", "enable-aggregator-routing"},
		"taskctl's own stop takes three seconds": {
			"shutdown-delay-duration", "shutdown-watch-termination-grace-period", "shutdown-send-retry-after"},
		"logs are taskctl's; see taskctl logs": {
			"v", "vmodule", "logging-format", "log-flush-frequency", "log-json-info-buffer-size", "log-json-split-stream",
			"log-text-info-buffer-size", "log-text-split-stream"},
	} {
		if slices.Contains(names, name) {
			return why
		}
	}
	return ""
}

func sortedKeys(m map[string][]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
