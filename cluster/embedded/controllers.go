package embedded

import "k8s.io/kubernetes/cmd/kube-controller-manager/names"

// controllers are the controllers of kube-controller-manager that matter
// without nodes: what users of the API rely on to be there, and what finishes
// by itself. Left out are those that only look after nodes, disks, device
// claims and bootstrap tokens, and autoscaling, which needs metrics of running
// Pods.
func controllers() []string {
	return []string{
		// Namespaces that are deleted would stay Terminating.
		names.NamespaceController,
		// Owner references: what an operator made goes when its owner goes.
		names.GarbageCollectorController,
		// The service account "default" in each namespace, without which no
		// Pod is admitted; service-account-token Secrets are filled by the
		// token controller, which BuildControllers always starts.
		names.ServiceAccountController,
		names.LegacyServiceAccountTokenCleanerController,
		// The ConfigMap kube-root-ca.crt in each namespace.
		names.RootCACertificatePublisherController,
		names.KubeAPIServerClusterTrustBundlePublisherController,
		// admin, edit and view collect the rules of custom resources.
		names.ClusterRoleAggregationController,
		// status.used of quotas, count quotas of custom resources included.
		names.ResourceQuotaController,
		// The type checking of policies is reported in their status.
		names.ValidatingAdmissionPolicyStatusController,

		// Workloads: their children and their status are what tests of
		// operators look at, although no Pod ever runs.
		names.DeploymentController,
		names.ReplicaSetController,
		names.ReplicationControllerController,
		names.StatefulSetController,
		names.DaemonSetController,
		names.JobController,
		names.CronJobController,
		names.TTLAfterFinishedController,
		names.DisruptionController,
		// A deleted Pod that was never bound to a node, and Pods whose time is
		// up, are removed.
		names.PodGarbageCollectorController,

		// A Service without Pods gets its empty EndpointSlice, and Endpoints
		// that somebody writes are mirrored.
		names.EndpointsController,
		names.EndpointSliceController,
		names.EndpointSliceMirroringController,
		// The default ServiceCIDR becomes Ready and can be deleted only empty.
		names.ServiceCIDRController,

		// Finalizers pvc-protection, pv-protection and vac-protection are set
		// by admission: somebody has to take them off.
		names.PersistentVolumeClaimProtectionController,
		names.PersistentVolumeProtectionController,
		names.VolumeAttributesClassProtectionController,
		names.PodGroupProtectionController,

		// Certificate signing requests are signed by the cluster authority,
		// as cert-manager-like operators expect.
		names.CertificateSigningRequestSigningController,
		names.CertificateSigningRequestApprovingController,
		names.CertificateSigningRequestCleanerController,
		names.PodCertificateRequestCleanerController,

		names.StorageVersionMigratorController,
	}
}
