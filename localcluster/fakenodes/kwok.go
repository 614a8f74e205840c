// SPDX-License-Identifier: Apache-2.0

package fakenodes

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/config/resources"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/utils/informer"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
	"sigs.k8s.io/yaml"
)

const (
	// holder stands in the leases. It is the same for every process of the
	// role: a restarted one must not wait until its own leases run out.
	holder = "kumiki-localcluster"

	nodeStageWorkers = 8
	leaseWorkers     = 8
)

// nodeStages are KWOK's own: initialise a node that is not Ready, and post the
// status every ten minutes as a kubelet with leases does.
func nodeStages(heartbeats bool) ([]*internalversion.Stage, error) {
	sources := []string{nodefast.DefaultNodeInit}
	if heartbeats {
		sources = append(sources, nodeheartbeat.DefaultNodeHeartbeatWithLease)
	}
	var out []*internalversion.Stage
	for _, source := range sources {
		var stage v1alpha1.Stage
		if err := yaml.Unmarshal([]byte(source), &stage); err != nil {
			return nil, fmt.Errorf("read node stage: %w", err)
		}
		internal, err := internalversion.ConvertToInternalStage(&stage)
		if err != nil {
			return nil, fmt.Errorf("convert node stage %s: %w", stage.Name, err)
		}
		out = append(out, internal)
	}
	return out, nil
}

// keepNodes runs KWOK's node controller and, unless lease is 0, its lease
// controller until ctx ends. Their pod controller is not used (see doc.go), so
// they are put together here and not by KWOK's Controller.
func keepNodes(ctx context.Context, client kubernetes.Interface, recorder record.EventRecorder, lease time.Duration) error {
	stages, err := nodeStages(lease > 0)
	if err != nil {
		return err
	}
	lc, err := lifecycle.NewLifecycle(stages)
	if err != nil {
		return fmt.Errorf("build node stages: %w", err)
	}
	events := make(chan informer.Event[*v1.Node], 64)
	nodes, err := informer.NewInformer[*v1.Node, *v1.NodeList](client.CoreV1().Nodes()).
		WatchWithCache(ctx, informer.Option{}, events)
	if err != nil {
		return fmt.Errorf("watch nodes: %w", err)
	}
	config := controllers.NodeControllerConfig{
		Clock:                clock.RealClock{},
		TypedClient:          client,
		NodeIP:               "192.0.2.2",
		Lifecycle:            resources.NewStaticGetter(lc),
		PlayStageParallelism: nodeStageWorkers,
		Recorder:             recorder,
	}
	if lease > 0 {
		leases, err := keepLeases(ctx, client, nodes, lease)
		if err != nil {
			return err
		}
		config.OnNodeManagedFunc = leases.TryHold
		config.OnNodeUnmanagedFunc = leases.ReleaseHold
	}
	controller, err := controllers.NewNodeController(config)
	if err != nil {
		return fmt.Errorf("make node controller: %w", err)
	}
	if err := controller.Start(ctx, events); err != nil {
		return fmt.Errorf("start node controller: %w", err)
	}
	return nil
}

func keepLeases(ctx context.Context, client kubernetes.Interface, nodes informer.Getter[*v1.Node], lease time.Duration) (*controllers.NodeLeaseController, error) {
	held, err := informer.NewInformer[*coordinationv1.Lease, *coordinationv1.LeaseList](
		client.CoordinationV1().Leases(v1.NamespaceNodeLease)).WatchWithCache(ctx, informer.Option{}, nil)
	if err != nil {
		return nil, fmt.Errorf("watch leases: %w", err)
	}
	controller, err := controllers.NewNodeLeaseController(controllers.NodeLeaseControllerConfig{
		Clock:                clock.RealClock{},
		HolderIdentity:       holder,
		TypedClient:          client,
		LeaseDurationSeconds: uint(lease.Seconds()),
		LeaseParallelism:     leaseWorkers,
		GetLease: func(name string) (*coordinationv1.Lease, bool) {
			return held.GetWithNamespace(name, v1.NamespaceNodeLease)
		},
		// As a kubelet: four times in a lease's life, a little apart.
		RenewInterval:       lease / 4,
		RenewIntervalJitter: 0.04,
		MutateLeaseFunc: func(l *coordinationv1.Lease) error {
			if node, ok := nodes.Get(l.Name); ok && len(l.OwnerReferences) == 0 {
				l.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
				}
			}
			return nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make lease controller: %w", err)
	}
	if err := controller.Start(ctx); err != nil {
		return nil, fmt.Errorf("start lease controller: %w", err)
	}
	return controller, nil
}
