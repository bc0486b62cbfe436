package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	clientsetv1 "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

const crdPollInterval = 20 * time.Millisecond

// installCRDs creates or updates the definitions in the folders, side by side,
// and waits until all of them are served.
func installCRDs(ctx context.Context, config *rest.Config, dirs []string) error {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, dir := range dirs {
		crds, err := readCRDs(dir)
		if err != nil {
			return err
		}
		if len(crds) == 0 {
			return fmt.Errorf("no CustomResourceDefinition is in the YAML files of %s", dir)
		}
		all = append(all, crds...)
	}
	if len(all) == 0 {
		return nil
	}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	for _, crd := range all {
		if err := applyCRD(ctx, crds, crd); err != nil {
			return fmt.Errorf("install the custom resource %s: %w", crd.Name, err)
		}
	}
	for _, crd := range all {
		if err := awaitCRD(ctx, client, crd); err != nil {
			return fmt.Errorf("the custom resource %s: %w", crd.Name, err)
		}
	}
	return nil
}

func applyCRD(ctx context.Context, crds clientsetv1.CustomResourceDefinitionInterface, crd *apiextensionsv1.CustomResourceDefinition) error {
	_, err := crds.Create(ctx, crd, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	existing, err := crds.Get(ctx, crd.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	crd.ResourceVersion = existing.ResourceVersion
	_, err = crds.Update(ctx, crd, metav1.UpdateOptions{})
	return err
}

// awaitCRD waits until each served version can be listed: a definition is
// Established a moment before it is.
func awaitCRD(ctx context.Context, client *clientset.Clientset, crd *apiextensionsv1.CustomResourceDefinition) error {
	state := "it was not looked at"
	err := wait.PollUntilContextCancel(ctx, crdPollInterval, true, func(ctx context.Context) (bool, error) {
		current, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, crd.Name, metav1.GetOptions{})
		if err != nil {
			state = err.Error()
			return false, ctx.Err()
		}
		for _, condition := range current.Status.Conditions {
			if condition.Type == apiextensionsv1.NamesAccepted && condition.Status == apiextensionsv1.ConditionFalse {
				return false, fmt.Errorf("its names were not accepted: %s", condition.Message)
			}
		}
		if state = "it is not established"; !established(current) {
			return false, nil
		}
		for _, version := range crd.Spec.Versions {
			if !version.Served {
				continue
			}
			path := []string{"apis", crd.Spec.Group, version.Name, crd.Spec.Names.Plural}
			if err := client.ApiextensionsV1().RESTClient().Get().AbsPath(path...).Param("limit", "1").Do(ctx).Error(); err != nil {
				state = err.Error()
				return false, ctx.Err()
			}
			if err := discovered(client, crd, version.Name); err != nil {
				state = err.Error()
				return false, ctx.Err()
			}
		}
		return true, nil
	})
	if ctx.Err() != nil {
		return fmt.Errorf("it is not served in time (%s): %w", state, ctx.Err())
	}
	return err
}

// discovered is nil once clients that look for the resource find it: the list
// of groups and the group's own follow a moment after it is served.
func discovered(client *clientset.Clientset, crd *apiextensionsv1.CustomResourceDefinition, version string) error {
	groupVersion := crd.Spec.Group + "/" + version
	groups, err := client.Discovery().ServerGroups()
	if err != nil {
		return err
	}
	if !slices.Contains(metav1.ExtractGroupVersions(groups), groupVersion) {
		return fmt.Errorf("discovery does not list %s", groupVersion)
	}
	list, err := client.Discovery().ServerResourcesForGroupVersion(groupVersion)
	if err != nil {
		return err
	}
	for _, resource := range list.APIResources {
		if resource.Name == crd.Spec.Names.Plural {
			return nil
		}
	}
	return fmt.Errorf("discovery does not list %s in %s", crd.Spec.Names.Plural, groupVersion)
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}
