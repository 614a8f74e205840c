// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/features"
)

// loop does the work of a controller until its context ends.
type loop func(context.Context)

// controller is one row of the table.
type controller struct {
	// name is that of kube-controller-manager's --controllers.
	name string
	// account is the service account in kube-system whose role the controller has.
	account string
	// gates must all be on, or the controller does not run.
	gates []featuregate.Feature
	// build creates the controller and registers its informers, which are started afterwards.
	build func(ctx context.Context, e *environment, client identity) (loop, error)
}

// table lists the controllers that scheduling needs. Beyond the owners of pods: node lifecycle removes the not-ready
// taint that admission puts on every new node, and cluster role aggregation fills the role view. The order is without
// meaning: all are built before the first one runs.
var table = []controller{
	{names.NamespaceController, "namespace-controller", nil, buildNamespaces},
	{names.ServiceAccountController, "service-account-controller", nil, buildServiceAccounts},
	{names.RootCACertificatePublisherController, "root-ca-cert-publisher", nil, buildRootCA},
	{names.ClusterRoleAggregationController, "clusterrole-aggregation-controller", nil, buildClusterRoles},
	{names.GarbageCollectorController, "generic-garbage-collector", nil, buildGarbageCollector},
	{names.ReplicationControllerController, "replication-controller", nil, buildReplicationControllers},
	{names.ReplicaSetController, "replicaset-controller", nil, buildReplicaSets},
	{names.DeploymentController, "deployment-controller", nil, buildDeployments},
	{names.StatefulSetController, "statefulset-controller", nil, buildStatefulSets},
	{names.DaemonSetController, "daemon-set-controller", nil, buildDaemonSets},
	{names.JobController, "job-controller", nil, buildJobs},
	{names.CronJobController, "cronjob-controller", nil, buildCronJobs},
	{names.DisruptionController, "disruption-controller", nil, buildDisruptionBudgets},
	{names.ResourceQuotaController, "resourcequota-controller", nil, buildResourceQuotas},
	{names.PodGarbageCollectorController, "pod-garbage-collector", nil, buildPodGarbageCollector},
	{names.NodeLifecycleController, "node-controller", nil, buildNodeLifecycle},
	{names.TaintEvictionController, "node-controller", []featuregate.Feature{features.SeparateTaintEvictionController},
		buildTaintEviction},
	{names.DeviceTaintEvictionController, "device-taint-eviction-controller",
		[]featuregate.Feature{features.DynamicResourceAllocation, features.DRADeviceTaints}, buildDeviceTaintEviction},
	{names.ResourceClaimController, "resource-claim-controller",
		[]featuregate.Feature{features.DynamicResourceAllocation}, buildResourceClaims},
	{names.PodGroupProtectionController, "podgroup-protection-controller",
		[]featuregate.Feature{features.GenericWorkload}, buildPodGroupProtection},
	{names.EphemeralVolumeController, "ephemeral-volume-controller", nil, buildEphemeralVolumes},
	{names.PersistentVolumeBinderController, "persistent-volume-binder", nil, buildVolumeBinder},
	{names.PersistentVolumeClaimProtectionController, "pvc-protection-controller", nil, buildClaimProtection},
	{names.PersistentVolumeProtectionController, "pv-protection-controller", nil, buildVolumeProtection},
}

// Names returns the controllers that a local cluster has.
func Names() []string {
	out := make([]string, 0, len(table))
	for _, c := range table {
		out = append(out, c.name)
	}
	return out
}
