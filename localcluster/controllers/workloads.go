// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replication"
	"k8s.io/kubernetes/pkg/controller/statefulset"
)

// This file builds the controllers that own pods, and that of disruption budgets.

func buildReplicationControllers(ctx context.Context, e *environment, client identity) (loop, error) {
	core := e.informers.Core().V1()
	c := replication.NewReplicationManager(ctx, core.Pods(), core.ReplicationControllers(), client,
		replication.BurstReplicas)
	return workers(c.Run, e.config.ReplicationController.ConcurrentRCSyncs), nil
}

func buildReplicaSets(ctx context.Context, e *environment, client identity) (loop, error) {
	c := replicaset.NewReplicaSetController(ctx, e.informers.Apps().V1().ReplicaSets(), e.informers.Core().V1().Pods(),
		client, replicaset.BurstReplicas)
	return workers(c.Run, e.config.ReplicaSetController.ConcurrentRSSyncs), nil
}

func buildDeployments(ctx context.Context, e *environment, client identity) (loop, error) {
	core, apps := e.informers.Core().V1(), e.informers.Apps().V1()
	c, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(), client)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, e.config.DeploymentController.ConcurrentDeploymentSyncs), nil
}

func buildStatefulSets(ctx context.Context, e *environment, client identity) (loop, error) {
	core, apps := e.informers.Core().V1(), e.informers.Apps().V1()
	c := statefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(),
		apps.ControllerRevisions(), client)
	return workers(c.Run, e.config.StatefulSetController.ConcurrentStatefulSetSyncs), nil
}

func buildDaemonSets(ctx context.Context, e *environment, client identity) (loop, error) {
	core, apps := e.informers.Core().V1(), e.informers.Apps().V1()
	c, err := daemon.NewDaemonSetsController(ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(),
		core.Nodes(), client, flowcontrol.NewBackOff(time.Second, 15*time.Minute))
	if err != nil {
		return nil, err
	}
	return workers(c.Run, e.config.DaemonSetController.ConcurrentDaemonSetSyncs), nil
}

func buildJobs(ctx context.Context, e *environment, client identity) (loop, error) {
	c, err := newJobs(ctx, e, client)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, e.config.JobController.ConcurrentJobSyncs), nil
}

func buildCronJobs(ctx context.Context, e *environment, client identity) (loop, error) {
	batch := e.informers.Batch().V1()
	c, err := cronjob.NewControllerV2(ctx, batch.Jobs(), batch.CronJobs(), client)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, e.config.CronJobController.ConcurrentCronJobSyncs), nil
}

// buildDisruptionBudgets builds the controller that says how many pods of a budget may be evicted. It asks the owner of
// the pods, of any kind that can be scaled, how many there should be.
func buildDisruptionBudgets(ctx context.Context, e *environment, client identity) (loop, error) {
	cfg, err := client.config()
	if err != nil {
		return nil, err
	}
	scales, err := scale.NewForConfig(cfg, e.mapper, dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(client.Discovery()))
	if err != nil {
		return nil, err
	}
	core, apps := e.informers.Core().V1(), e.informers.Apps().V1()
	c := disruption.NewDisruptionController(ctx, core.Pods(), e.informers.Policy().V1().PodDisruptionBudgets(),
		core.ReplicationControllers(), apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(), client, e.mapper,
		scales, client.Discovery())
	return disruptionLoop(c, e), nil
}
