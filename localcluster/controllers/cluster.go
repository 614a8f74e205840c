// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	pkgcontroller "k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"
)

// This file builds the controllers of namespaces, of rights, and of objects of any kind.

// kindsPeriod is how often the controllers of objects of any kind look for new kinds.
const kindsPeriod = 30 * time.Second

// workers returns a loop with a fixed number of workers.
func workers(run func(context.Context, int), count int32) loop {
	return func(ctx context.Context) { run(ctx, int(count)) }
}

// buildNamespaces builds the controller that empties namespaces that are deleted. It lists and deletes every kind, so
// its limits of requests are higher than those of the others.
func buildNamespaces(ctx context.Context, e *environment, client identity) (loop, error) {
	cfg, err := client.config()
	if err != nil {
		return nil, err
	}
	cfg.QPS *= 20
	cfg.Burst *= 100
	fast, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	anyKind, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	settings := e.config.NamespaceController
	c := namespace.NewNamespaceController(ctx, fast, anyKind, fast.Discovery().ServerPreferredNamespacedResources,
		e.informers.Core().V1().Namespaces(), settings.NamespaceSyncPeriod.Duration, v1.FinalizerKubernetes)
	return workers(c.Run, settings.ConcurrentNamespaceSyncs), nil
}

func buildServiceAccounts(ctx context.Context, e *environment, client identity) (loop, error) {
	core := e.informers.Core().V1()
	c, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(),
		core.Namespaces(), client, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return nil, err
	}
	return workers(c.Run, 1), nil
}

// buildRootCA builds the controller that puts the certificate authority of the API server into each namespace.
func buildRootCA(_ context.Context, e *environment, client identity) (loop, error) {
	ca, err := rootCA(e, client)
	if err != nil {
		return nil, err
	}
	core := e.informers.Core().V1()
	c, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), client, ca)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, 1), nil
}

// rootCA returns the certificates of --root-ca-file, or those by which the clients know the API server.
func rootCA(e *environment, client identity) ([]byte, error) {
	file := e.config.SAController.RootCAFile
	if file == "" {
		cfg, err := client.config()
		if err != nil {
			return nil, err
		}
		return cfg.CAData, nil
	}
	ca, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read --root-ca-file: %w", err)
	}
	if _, err := certutil.ParseCertsPEM(ca); err != nil {
		return nil, fmt.Errorf("parse --root-ca-file %s: %w", file, err)
	}
	return ca, nil
}

func buildClusterRoles(_ context.Context, e *environment, client identity) (loop, error) {
	c := clusterroleaggregation.NewClusterRoleAggregation(e.informers.Rbac().V1().ClusterRoles(), client.RbacV1())
	return workers(c.Run, 5), nil
}

// buildGarbageCollector builds the controller that deletes objects without owners. A deletion takes two requests, so
// its client may make twice as many.
func buildGarbageCollector(ctx context.Context, e *environment, client identity) (loop, error) {
	settings := e.config.GarbageCollectorController
	discovery, err := client.clients.DiscoveryClient(client.account)
	if err != nil {
		return nil, err
	}
	cfg, err := client.config()
	if err != nil {
		return nil, err
	}
	cfg.QPS *= 2
	anyKind, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	graph := garbagecollector.NewDependencyGraphBuilder(ctx, e.metadata, e.mapper,
		garbagecollector.DefaultIgnoredResources(), e.anyInformers, e.started)
	c, err := garbagecollector.NewComposedGarbageCollector(ctx, client, anyKind, e.mapper, graph)
	if err != nil {
		return nil, err
	}
	return both(
		func(ctx context.Context) { c.Run(ctx, int(settings.ConcurrentGCSyncs), kindsPeriod) },
		func(ctx context.Context) { c.Sync(ctx, discovery, kindsPeriod) },
	), nil
}

// buildResourceQuotas builds the controller that counts what the quotas of a namespace limit, for each kind that the
// API server has.
func buildResourceQuotas(ctx context.Context, e *environment, client identity) (loop, error) {
	discovery, err := client.clients.DiscoveryClient(client.account)
	if err != nil {
		return nil, err
	}
	counted, err := quotainstall.NewQuotaConfigurationForControllers(
		generic.ListerFuncForResourceFunc(e.informers.ForResource), e.informers)
	if err != nil {
		return nil, err
	}
	settings := e.config.ResourceQuotaController
	c, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               client.CoreV1(),
		ResourceQuotaInformer:     e.informers.Core().V1().ResourceQuotas(),
		ResyncPeriod:              pkgcontroller.StaticResyncPeriodFunc(settings.ResourceQuotaSyncPeriod.Duration),
		InformerFactory:           e.anyInformers,
		ReplenishmentResyncPeriod: e.resync,
		DiscoveryFunc:             discovery.ServerPreferredNamespacedResources,
		IgnoredResourcesFunc:      counted.IgnoredResources,
		InformersStarted:          e.started,
		Registry:                  generic.NewRegistry(counted.Evaluators()),
		UpdateFilter:              quotainstall.DefaultUpdateFilter(),
	})
	if err != nil {
		return nil, err
	}
	return both(
		workers(c.Run, settings.ConcurrentResourceQuotaSyncs),
		func(ctx context.Context) { c.Sync(ctx, discovery.ServerPreferredNamespacedResources, kindsPeriod) },
	), nil
}

// both returns a loop that runs two loops side by side until both end.
func both(a, b loop) loop {
	return func(ctx context.Context) {
		var running sync.WaitGroup
		running.Go(func() { a(ctx) })
		b(ctx)
		running.Wait()
	}
}
