package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
)

// kubeconfig is what is needed of a kubeconfig with its data inlined.
type kubeconfig struct {
	Clusters []struct {
		Cluster struct {
			Server string `json:"server"`
			CA     []byte `json:"certificate-authority-data"`
		} `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		User struct {
			Certificate []byte `json:"client-certificate-data"`
			Key         []byte `json:"client-key-data"`
		} `json:"user"`
	} `json:"users"`
}

// watchForeign opens watches on ConfigMaps over plain HTTP, each on a
// connection of its own. The function that it returns closes them.
func watchForeign(ctx context.Context, binary, dir string) (func(), error) {
	command := exec.CommandContext(ctx, binary, "kubectl", "config", "view", "--raw", "--flatten", "-o", "json")
	command.Env = append(os.Environ(), "TASKCTL_DATA_DIR="+filepath.Join(dir, "data"))
	data, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	var config kubeconfig
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, err
	}
	if len(config.Clusters) == 0 || len(config.Users) == 0 {
		return nil, errors.New("the kubeconfig has no cluster or no user")
	}
	certificate, err := tls.X509KeyPair(config.Users[0].User.Certificate, config.Users[0].User.Key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.Clusters[0].Cluster.CA)
	ctx, cancel := context.WithCancel(ctx)
	for range watches {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}}}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Clusters[0].Cluster.Server+"/api/v1/configmaps?watch=1", nil)
		if err != nil {
			cancel()
			return nil, err
		}
		answer, err := transport.RoundTrip(request)
		if err != nil {
			cancel()
			return nil, err
		}
		if answer.StatusCode != http.StatusOK {
			cancel()
			return nil, fmt.Errorf("watch: %s", answer.Status)
		}
		go io.Copy(io.Discard, answer.Body) // ends with its context or the server
	}
	return cancel, nil
}
