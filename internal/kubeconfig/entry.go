package kubeconfig

import (
	"encoding/base64"
	"errors"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// Extension is the name of the kubeconfig extension that marks our entries.
const Extension = "taskctl.example.com"

// Entry is a cluster, a user and a context, all of the same name.
type Entry struct {
	// Name is the name of all three, for example "taskctl".
	Name string
	// Server is the API server's URL.
	Server string
	// CA, Certificate and Key are PEM.
	CA, Certificate, Key []byte
	// Owner is the data folder that the entry belongs to.
	Owner string
}

// ContextName is the context of the appliance of that name: "taskctl" for the
// default one, "taskctl-NAME" for the others.
func ContextName(appliance string) string {
	if appliance == "taskctl" {
		return appliance
	}
	return "taskctl-" + appliance
}

// DefaultFile is where kubectl would write: the first file of KUBECONFIG, else
// ~/.kube/config.
func DefaultFile(getenv func(string) string) (string, error) {
	for _, file := range filepath.SplitList(getenv("KUBECONFIG")) {
		if file != "" {
			return filepath.Abs(file)
		}
	}
	home := getenv("HOME")
	if home == "" {
		return "", errors.New("no kubeconfig to merge into: neither KUBECONFIG nor HOME is set; name a file with --kubeconfig")
	}
	return filepath.Abs(filepath.Join(home, ".kube", "config"))
}

// Standalone is a kubeconfig with this entry alone, as its current context.
func Standalone(entry Entry) ([]byte, error) {
	document := emptyDocument()
	put(document, entry)
	setScalar(document, "current-context", entry.Name)
	return encode(document)
}

func put(document *yaml.Node, entry Entry) {
	cluster := item(document, "clusters", entry.Name, "cluster")
	setScalar(cluster, "server", entry.Server)
	setData(cluster, "certificate-authority-data", entry.CA)
	setExtension(cluster, entry.Owner)

	user := item(document, "users", entry.Name, "user")
	setData(user, "client-certificate-data", entry.Certificate)
	setData(user, "client-key-data", entry.Key)
	setExtension(user, entry.Owner)

	context := item(document, "contexts", entry.Name, "context")
	setScalar(context, "cluster", entry.Name)
	setScalar(context, "user", entry.Name)
	setExtension(context, entry.Owner)
}

func setData(mapping *yaml.Node, key string, data []byte) {
	setScalar(mapping, key, base64.StdEncoding.EncodeToString(data))
}

// setExtension marks an entry as ours; other extensions stay.
func setExtension(mapping *yaml.Node, owner string) {
	extension := item(mapping, "extensions", Extension, "extension")
	setScalar(extension, "dataFolder", owner)
}

// ownerOf is the data folder that an entry is marked with, "" if none.
func ownerOf(mapping *yaml.Node) string {
	return scalar(get(find(mapping, "extensions", Extension), "extension"), "dataFolder")
}
