package cluster_test

import (
	"context"
	"fmt"
	"log"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/taskctl-dev/taskctl/cluster"
)

func ExampleStart() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	c, err := cluster.Start(ctx, cluster.Options{CRDDirs: []string{"testdata/crds"}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := c.Stop(ctx); err != nil {
			log.Fatal(err)
		}
	}()

	// What may a service account do that nobody has given any rights?
	config, err := c.RESTConfigFor("system:serviceaccount:default:my-operator")
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
	fmt.Println(err)
	// Output: secrets is forbidden: User "system:serviceaccount:default:my-operator" cannot list resource "secrets" in API group "" in the namespace "default"
}
