package kubeconfig

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/taskctl-dev/taskctl/internal/datadir"
)

// users is a kubeconfig as people have them: comments, fields that we don't
// know, an exec plugin, an order of their own.
const users = `# my clusters
apiVersion: v1
kind: Config
current-context: work # the usual one
preferences: {colors: true}
x-unknown: {kept: "yes"}
clusters:
- cluster:
    server: https://work.example.com
    x-future-field: 7
  name: work
contexts:
- context: {cluster: work, user: me, namespace: team}
  name: work
users:
- name: me
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: login
      interactiveMode: Never
`

func entry(owner string) Entry {
	return Entry{Name: "taskctl", Server: "https://127.0.0.1:1234", CA: []byte("ca"), Certificate: []byte("cert"), Key: []byte("key"), Owner: owner}
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func merge(t *testing.T, path, owner string) (former string, created bool) {
	t.Helper()
	former, created, err := Merge(t.Context(), path, entry(owner), true)
	if err != nil {
		t.Fatal(err)
	}
	return former, created
}

func TestMergeKeepsEverythingElse(t *testing.T) {
	path := file(t, users)
	former, created := merge(t, path, "/data")
	if former != "work" || created {
		t.Errorf("former %q, created %t", former, created)
	}
	content := read(t, path)
	for _, kept := range []string{"# my clusters", "# the usual one", `x-unknown: {kept: "yes"}`, "x-future-field: 7", "interactiveMode: Never", "namespace: team"} {
		if !strings.Contains(content, kept) {
			t.Errorf("%q was lost:\n%s", kept, content)
		}
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if config.CurrentContext != "taskctl" || config.Clusters["taskctl"].Server != "https://127.0.0.1:1234" ||
		string(config.AuthInfos["taskctl"].ClientKeyData) != "key" || config.Contexts["taskctl"].AuthInfo != "taskctl" {
		t.Errorf("client-go reads %+v", config)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(path + ".lock"); !errors.Is(err, os.ErrNotExist) {
		t.Error("the lock was left behind")
	}
}

func TestRemoveRestores(t *testing.T) {
	path := file(t, users)
	former, created := merge(t, path, "/data")
	if err := Remove(t.Context(), path, "taskctl", "/data", former, created); err != nil {
		t.Fatal(err)
	}
	before, err := clientcmd.Load([]byte(users))
	if err != nil {
		t.Fatal(err)
	}
	after, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if after.CurrentContext != before.CurrentContext || len(after.Contexts) != 1 || len(after.Clusters) != 1 || len(after.AuthInfos) != 1 {
		t.Errorf("after:\n%s", read(t, path))
	}
	if strings.Contains(read(t, path), "taskctl") {
		t.Errorf("something of ours is left:\n%s", read(t, path))
	}
}

func TestContextThatTheUserChoseMeanwhileStays(t *testing.T) {
	path := file(t, users)
	former, _ := merge(t, path, "/data")
	changed := strings.Replace(read(t, path), "current-context: taskctl", "current-context: other", 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Remove(t.Context(), path, "taskctl", "/data", former, false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(read(t, path), "current-context: other") {
		t.Errorf("after:\n%s", read(t, path))
	}
}

func TestWithoutSwitchingTheCurrentContextStays(t *testing.T) {
	path := file(t, users)
	former, _, err := Merge(t.Context(), path, entry("/data"), false)
	if err != nil || former != "" || !strings.Contains(read(t, path), "current-context: work") {
		t.Errorf("former %q, %v:\n%s", former, err, read(t, path))
	}
}

func TestFileThatWasCreatedGoesAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "config")
	former, created := merge(t, path, "/data")
	if !created {
		t.Error("not created")
	}
	if err := Remove(t.Context(), path, "taskctl", "/data", former, created); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

func TestCreatedFileInWhichOthersWroteStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	merge(t, path, "/data")
	other := entry("/other")
	other.Name = "taskctl-other"
	if _, _, err := Merge(t.Context(), path, other, false); err != nil {
		t.Fatal(err)
	}
	if err := Remove(t.Context(), path, "taskctl", "/data", "", true); err != nil {
		t.Fatal(err)
	}
	if content := read(t, path); !strings.Contains(content, "taskctl-other") || strings.Contains(content, "name: taskctl\n") {
		t.Errorf("after:\n%s", content)
	}
}

func TestMergeAgainWithAnotherPort(t *testing.T) {
	path := file(t, users)
	merge(t, path, "/data")
	again := entry("/data")
	again.Server = "https://127.0.0.1:9999"
	former, created, err := Merge(t.Context(), path, again, true)
	if err != nil || former != "" || created {
		t.Errorf("former %q, created %t, %v", former, created, err)
	}
	content := read(t, path)
	if strings.Count(content, "name: taskctl\n") != 3 || strings.Contains(content, "1234") {
		t.Errorf("after:\n%s", content)
	}
}

func TestEntriesOfOthersAreNotTouched(t *testing.T) {
	foreign := strings.ReplaceAll(users, "work", "taskctl")
	path := file(t, foreign)
	_, _, err := Merge(t.Context(), path, entry("/data"), true)
	if err == nil || !strings.Contains(err.Error(), "that taskctl did not make") {
		t.Errorf("error %v", err)
	}
	if err := Check(path, "taskctl", "/data"); err == nil {
		t.Error("Check did not see it")
	}
	if err := Remove(t.Context(), path, "taskctl", "/data", "", false); err != nil {
		t.Fatal(err)
	}
	if read(t, path) != foreign {
		t.Errorf("the file was changed:\n%s", read(t, path))
	}
}

func TestEntryOfARunningApplianceIsNotTakenOver(t *testing.T) {
	running, err := datadir.Open(t.TempDir(), "taskctl")
	if err != nil {
		t.Fatal(err)
	}
	path := file(t, "")
	merge(t, path, running.Path)
	if _, _, err := Merge(t.Context(), path, entry("/data"), true); err == nil || !strings.Contains(err.Error(), running.Path) {
		t.Errorf("error %v", err)
	}
	running.Close()
	if _, _, err := Merge(t.Context(), path, entry("/data"), true); err != nil {
		t.Errorf("that of one that is gone: %v", err)
	}
}

func TestSymbolicLinkStaysOne(t *testing.T) {
	target := file(t, users)
	link := filepath.Join(t.TempDir(), "config")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	merge(t, link, "/data")
	if destination, err := os.Readlink(link); err != nil || destination != target {
		t.Errorf("%q, %v", destination, err)
	}
	if !strings.Contains(read(t, target), "dataFolder: /data") {
		t.Error("the target was not changed")
	}
}

func TestBrokenFileIsLeftAlone(t *testing.T) {
	for name, content := range map[string]string{
		"no YAML":    "contexts: [",
		"no mapping": "- a\n",
		"no list":    "contexts: {a: b}\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t, content)
			_, _, err := Merge(t.Context(), path, entry("/data"), true)
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "--kubeconfig") {
				t.Errorf("error %v", err)
			}
			if read(t, path) != content {
				t.Error("it was changed")
			}
		})
	}
}

func TestEmptyLists(t *testing.T) {
	path := file(t, "apiVersion: v1\nkind: Config\nclusters: null\ncontexts: []\nusers:\ncurrent-context: \"\"\n")
	merge(t, path, "/data")
	config, err := clientcmd.LoadFromFile(path)
	if err != nil || len(config.Contexts) != 1 || config.CurrentContext != "taskctl" {
		t.Errorf("%v:\n%s", err, read(t, path))
	}
}

func TestJSONKubeconfig(t *testing.T) {
	path := file(t, `{"apiVersion":"v1","kind":"Config","clusters":[],"contexts":[],"users":[],"current-context":""}`)
	merge(t, path, "/data")
	if config, err := clientcmd.LoadFromFile(path); err != nil || config.CurrentContext != "taskctl" {
		t.Errorf("%v:\n%s", err, read(t, path))
	}
}

func TestForeignLockIsHonouredAndAStaleOneIsNot(t *testing.T) {
	path := file(t, users)
	lockPath := path + ".lock"
	if err := os.WriteFile(lockPath, nil, 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, _, err := Merge(ctx, path, entry("/data"), true); err == nil || !strings.Contains(err.Error(), lockPath) {
		t.Errorf("error %v", err)
	}
	if read(t, path) != users {
		t.Error("the file was changed in spite of the lock")
	}
	old := time.Now().Add(-2 * staleAfter)
	if err := os.Chtimes(lockPath, old, old); err != nil {
		t.Fatal(err)
	}
	merge(t, path, "/data")
}

func TestDefaultFile(t *testing.T) {
	for name, test := range map[string]struct {
		env  map[string]string
		want string
	}{
		"first of several": {map[string]string{"KUBECONFIG": "/a:/b", "HOME": "/h"}, "/a"},
		"empty parts":      {map[string]string{"KUBECONFIG": "::/b", "HOME": "/h"}, "/b"},
		"the home's":       {map[string]string{"HOME": "/h"}, "/h/.kube/config"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DefaultFile(func(key string) string { return test.env[key] })
			if err != nil || got != test.want {
				t.Errorf("%q, %v; want %q", got, err, test.want)
			}
		})
	}
	if _, err := DefaultFile(func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("error %v", err)
	}
}

func TestStaleContexts(t *testing.T) {
	running, err := datadir.Open(t.TempDir(), "taskctl")
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	path := file(t, users)
	merge(t, path, running.Path)
	gone := entry(filepath.Join(t.TempDir(), "gone"))
	gone.Name = "taskctl-gone"
	if _, _, err := Merge(t.Context(), path, gone, true); err != nil {
		t.Fatal(err)
	}
	stale, err := Stale(path)
	if err != nil || strings.Join(stale, ",") != "taskctl-gone" {
		t.Fatalf("%v, %v", stale, err)
	}
	if _, err := RemoveStale(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if content := read(t, path); strings.Contains(content, "taskctl-gone") || !strings.Contains(content, running.Path) {
		t.Errorf("after:\n%s", content)
	}
}

func TestStandalone(t *testing.T) {
	content, err := Standalone(entry("/data"))
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil || config.Host != "https://127.0.0.1:1234" {
		t.Errorf("%v: %+v", err, config)
	}
}
