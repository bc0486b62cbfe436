package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	taskv1 "github.com/taskctl-dev/taskctl/operator/api/v1"
)

// clients reach the API server with the aggregator's identity.
type clients struct {
	kubernetes kubernetes.Interface
	tasks      rest.Interface
}

func newClients(config *rest.Config) (*clients, error) {
	binary := rest.CopyConfig(config)
	binary.ContentType = runtime.ContentTypeProtobuf
	binary.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := kubernetes.NewForConfig(binary)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}

	scheme := runtime.NewScheme()
	if err := taskv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register Tasks: %w", err)
	}
	custom := rest.CopyConfig(config)
	version := taskv1.GroupVersion()
	custom.GroupVersion = &version
	custom.APIPath = "/apis"
	custom.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	tasks, err := rest.RESTClientFor(custom)
	if err != nil {
		return nil, fmt.Errorf("make a client of Tasks: %w", err)
	}
	return &clients{kubernetes: core, tasks: tasks}, nil
}

// Get implements combinedtask.TaskReader.
func (c *clients) Get(ctx context.Context, namespace, name string) (*taskv1.Task, error) {
	task := &taskv1.Task{}
	err := c.tasks.Get().Namespace(namespace).Resource("tasks").Name(name).Do(ctx).Into(task)
	return task, err
}

// TaskVersion implements details.VersionReader.
func (c *clients) TaskVersion(ctx context.Context) (uint64, error) {
	data, err := c.tasks.Get().Resource("tasks").Param("limit", "1").
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").Do(ctx).Raw()
	if err != nil {
		return 0, err
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(data, &list); err != nil {
		return 0, fmt.Errorf("read a list of Tasks: %w", err)
	}
	return strconv.ParseUint(list.ResourceVersion, 10, 64)
}

// taskReflector fills a store with all Tasks.
func (c *clients) taskReflector(store cache.ReflectorStore) *cache.Reflector {
	source := cache.NewFilteredListWatchFromClient(c.tasks, "tasks", metav1.NamespaceAll, func(*metav1.ListOptions) {})
	return cache.NewReflectorWithOptions(source, &taskv1.Task{}, store, cache.ReflectorOptions{Name: "aggregator-tasks"})
}

// eventReflector fills a store with the Events that are about a Task. The
// selection is made by the API server; what other Events there are costs
// nothing here.
func (c *clients) eventReflector(store cache.ReflectorStore) *cache.Reflector {
	source := cache.NewFilteredListWatchFromClient(c.kubernetes.CoreV1().RESTClient(), "events", metav1.NamespaceAll, func(options *metav1.ListOptions) {
		options.LabelSelector = taskv1.LabelTaskUID
	})
	return cache.NewReflectorWithOptions(source, &corev1.Event{}, store, cache.ReflectorOptions{Name: "aggregator-events"})
}
