package cli

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestCertificatesAreRenewed runs with certificates of a minute's lifetime:
// watches that are opened first must outlive several of them, through the
// aggregated API too, and webhooks must answer all the time.
func TestCertificatesAreRenewed(t *testing.T) {
	s := newShell(t)
	args := []string{"up", "-d", "-q", "--certificate-lifetime", "60s"}
	s.must(0, args...)
	first := readFile(t, s.kubeconfig())
	watch := s.start("kubectl", "get", "configmaps", "--watch", "-o", "name")
	watch.await("kube-root-ca.crt")
	combinedWatch := s.start("kubectl", "get", "combinedtasks", "--watch", "-o", "name")

	// Each of these passes both webhooks, and opens connections of its own.
	refused := 0
	writes := 0
	renewedTwice := func() bool {
		log := readFile(t, filepath.Join(s.state("taskctl"), "logs", "supervisor.log"))
		for _, name := range []string{"admin", "aggregator", "aggregator-serving", "webhooks-serving", "front-proxy-client"} {
			if strings.Count(log, `msg="a certificate was renewed" name=`+name+"\n") < 2 {
				return false
			}
		}
		return true
	}
	for deadline := time.Now().Add(limit); !renewedTwice(); writes++ {
		if time.Now().After(deadline) {
			t.Fatal("the certificates were not renewed twice")
		}
		if result := s.run("kubectl", "create", "-f", s.taskFile(), "--dry-run=server", "-o", "name"); result.Code != 0 {
			refused++
			t.Errorf("a Task was refused: %s", result.Stderr)
		}
		if result := s.run("kubectl", "get", "combinedtasks"); result.Code != 0 {
			t.Errorf("combinedtasks: %s", result.Stderr)
		}
	}
	t.Logf("%d Tasks sent, %d refused", writes, refused)
	if now := readFile(t, s.kubeconfig()); now == first {
		t.Error("the kubeconfig has the first certificate still")
	}
	s.kubectl("create", "configmap", "after-the-renewal")
	watch.await("after-the-renewal")
	name := strings.TrimPrefix(strings.TrimSpace(s.kubectl("create", "-f", s.taskFile(), "-o", "name")), "task.example.example.com/")
	combinedWatch.await(name)
	checkWhole(t, s)
	if status := s.status(); status.code != 0 {
		t.Errorf("status %+v", status)
	}
	s.must(0, "down")
	watch.wait(limit)
	combinedWatch.wait(limit)

	// Meanwhile all of them expire.
	certificate := filepath.Join(s.state("taskctl"), "pki", "apiserver.crt")
	stopped := readFile(t, certificate)
	eventually(t, "the certificates' end", func() bool { return time.Now().After(expiry(t, certificate)) })
	s.must(0, args...)
	if stopped == readFile(t, certificate) {
		t.Error("the expired certificate is still used")
	}
	checkWhole(t, s)
	s.must(0, "down")
}

// TestClockThatWasMovedForward lets no time pass for an appliance until all of
// its certificates have expired: what a laptop that slept, or a clock that was
// set, looks like from inside.
func TestClockThatWasMovedForward(t *testing.T) {
	s := newShell(t)
	up := s.start("up", "--certificate-lifetime", "30s")
	up.await("Press ^C to stop")
	watch := s.start("kubectl", "get", "combinedtasks", "--watch", "-o", "name")
	checkWhole(t, s)
	before := s.status()

	up.signal(syscall.SIGSTOP)
	folder := filepath.Join(s.state("taskctl"), "pki")
	certificates, err := filepath.Glob(filepath.Join(folder, "*.crt"))
	if err != nil || len(certificates) < 9 {
		t.Fatalf("certificates: %v, %v", certificates, err)
	}
	for _, certificate := range certificates {
		if filepath.Base(certificate) == "ca.crt" || filepath.Base(certificate) == "front-proxy-ca.crt" {
			continue
		}
		eventually(t, "the end of "+certificate, func() bool { return time.Now().After(expiry(t, certificate)) })
	}
	up.signal(syscall.SIGCONT)

	eventually(t, "an answer through the aggregated API and the webhooks", func() bool {
		return s.run("kubectl", "get", "--raw", combined).Code == 0 && s.run("kubectl", "create", "-f", s.taskFile()).Code == 0
	})
	checkWhole(t, s)
	name := strings.TrimPrefix(strings.TrimSpace(s.kubectl("create", "-f", s.taskFile(), "-o", "name")), "task.example.example.com/")
	s.kubectl("wait", "task/"+name, "--for=condition=Ready", "--timeout=60s")
	eventually(t, "ready", func() bool { return s.status().code == 0 })
	if now := s.status(); now.RunID != before.RunID {
		t.Errorf("it is another run: %+v", now)
	}
	s.must(0, "down")
	if code := up.wait(limit); code != 0 {
		t.Errorf("code %d: %s", code, up.stderr)
	}
	watch.wait(limit)
}

// expiry is the end of a certificate's life.
func expiry(t *testing.T, file string) time.Time {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		t.Fatalf("%s is no PEM file", file)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate.NotAfter
}
