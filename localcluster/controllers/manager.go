// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/logs"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/apis/config"
)

const (
	// serverPatience is how long the API server may take to become healthy.
	serverPatience = 10 * time.Second
	// discoveryPeriod is how often the kinds that the API server has are read again.
	discoveryPeriod = 30 * time.Second
	// Exit codes.
	exitFailed, exitUsage = 1, 2
)

// environment is what the controllers are built from.
type environment struct {
	config config.KubeControllerManagerConfiguration
	// informers have one connection for all controllers, with the manager's own identity.
	informers informers.SharedInformerFactory
	// anyInformers are informers, and those of the metadata of kinds that have no typed client.
	anyInformers informerfactory.InformerFactory
	metadata     metadata.Interface
	mapper       *restmapper.DeferredDiscoveryRESTMapper
	// started is closed when the informers run. A controller that adds informers later must start them itself.
	started chan struct{}
	resync  func() time.Duration
	// clients make the clients of the controllers.
	clients clientbuilder.ControllerClientBuilder
}

// identity is the service account of a controller, as a client.
type identity struct {
	kubernetes.Interface
	account string
	clients clientbuilder.ControllerClientBuilder
}

// config returns the settings of a client with this identity.
func (i identity) config() (*rest.Config, error) { return i.clients.Config(i.account) }

// Run runs the controllers until the process gets SIGINT or SIGTERM, and returns its exit code.
func Run(args []string) int {
	o, err := parse(args)
	if err == nil && o.kubeconfig == "" {
		err = errors.New("--kubeconfig is missing")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "controllers: %v\n", err)
		return exitUsage
	}
	logs.InitLogs()
	defer logs.FlushLogs()
	if err := o.apply(); err != nil {
		klog.ErrorS(err, "Wrong flags")
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	if err := run(ctx, o); err != nil {
		klog.ErrorS(err, "Controllers failed")
		return exitFailed
	}
	return 0
}

// run builds all controllers, then starts their informers, then the controllers.
func run(ctx context.Context, o *options) error {
	e, err := newEnvironment(ctx, o)
	if err != nil {
		return err
	}
	loops, err := build(ctx, e, o)
	if err != nil {
		return err
	}
	e.anyInformers.Start(ctx.Done())
	close(e.started)
	var running sync.WaitGroup
	for _, l := range append(loops, e.refreshMapper) {
		running.Go(func() { l(ctx) })
	}
	running.Wait()
	return nil
}

// build builds the controllers that are enabled and whose feature gates are on.
func build(ctx context.Context, e *environment, o *options) ([]loop, error) {
	var loops []loop
	for _, c := range table {
		if !o.enabled(c.name) {
			continue
		}
		if off := firstOff(c); off != "" {
			klog.InfoS("Controller does not run", "controller", c.name, "featureGate", off)
			continue
		}
		client, err := e.clients.Client(c.account)
		if err != nil {
			return nil, fmt.Errorf("build %s: create a client of %s: %w", c.name, c.account, err)
		}
		ctx := klog.NewContext(ctx, klog.LoggerWithName(klog.FromContext(ctx), c.name))
		l, err := c.build(ctx, e, identity{client, c.account, e.clients})
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", c.name, err)
		}
		loops = append(loops, l)
	}
	return loops, nil
}

// firstOff returns the first feature gate that keeps a controller from running, or "".
func firstOff(c controller) string {
	for _, gate := range c.gates {
		if !utilfeature.DefaultFeatureGate.Enabled(gate) {
			return string(gate)
		}
	}
	return ""
}

func newEnvironment(ctx context.Context, o *options) (*environment, error) {
	// The API server of the same build knows every version that it serves; warnings about old ones are of no interest.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	cfg, err := clientConfig(o)
	if err != nil {
		return nil, err
	}
	own := clientbuilder.SimpleControllerClientBuilder{ClientConfig: cfg}
	client, err := own.Client("shared-informers")
	if err != nil {
		return nil, fmt.Errorf("create the informers' client: %w", err)
	}
	if err := waitForServer(ctx, client); err != nil {
		return nil, err
	}
	metadataConfig, err := own.Config("metadata-informers")
	if err != nil {
		return nil, fmt.Errorf("create the metadata client: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(metadataConfig)
	if err != nil {
		return nil, fmt.Errorf("create the metadata client: %w", err)
	}
	discovery, err := own.DiscoveryClient("controller-discovery")
	if err != nil {
		return nil, fmt.Errorf("create the discovery client: %w", err)
	}
	resync := resyncPeriod(o.config.Generic.MinResyncPeriod.Duration)
	typed := informers.NewSharedInformerFactoryWithOptions(client, resync(), informers.WithTransform(dropManagers))
	return &environment{
		config:    o.config,
		informers: typed,
		anyInformers: informerfactory.NewInformerFactory(typed, metadatainformer.NewSharedInformerFactoryWithOptions(
			metadataClient, resync(), metadatainformer.WithTransform(dropManagers))),
		metadata: metadataClient,
		mapper:   restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery)),
		started:  make(chan struct{}),
		resync:   resync,
		clients: clientbuilder.NewDynamicClientBuilder(rest.AnonymousClientConfig(cfg), client.CoreV1(),
			metav1.NamespaceSystem),
	}, nil
}

// clientConfig returns the settings of all clients. Compression costs CPU time on a machine that is its own network.
func clientConfig(o *options) (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read --kubeconfig: %w", err)
	}
	connection := o.config.Generic.ClientConnection
	cfg.DisableCompression = true
	cfg.AcceptContentTypes, cfg.ContentType = connection.AcceptContentTypes, connection.ContentType
	cfg.QPS, cfg.Burst = connection.QPS, int(connection.Burst)
	return cfg, nil
}

// waitForServer waits until the API server says that it is healthy.
func waitForServer(ctx context.Context, client kubernetes.Interface) error {
	var last error
	healthy := func(ctx context.Context) (bool, error) {
		last = client.Discovery().RESTClient().Get().AbsPath("/healthz").Do(ctx).Error()
		return last == nil, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, time.Second, serverPatience, true, healthy); err != nil {
		return fmt.Errorf("wait for the API server: %w", errors.Join(err, last))
	}
	return nil
}

// refreshMapper forgets the kinds of the API server now and then: custom resources come and go.
func (e *environment) refreshMapper(ctx context.Context) {
	wait.UntilWithContext(ctx, func(context.Context) { e.mapper.Reset() }, discoveryPeriod)
}

// resyncPeriod returns a function that draws from [least, 2*least), so that informers do not resync all at once.
func resyncPeriod(least time.Duration) func() time.Duration {
	return func() time.Duration { return time.Duration(float64(least) * (1 + rand.Float64())) }
}

// dropManagers removes the managed fields from an object before it is cached: no controller reads them.
func dropManagers(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil && m.GetManagedFields() != nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}
