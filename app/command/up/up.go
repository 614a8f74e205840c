// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/ask"
	"github.com/kumiki-scheduler/kumiki/app/command/incidents"
	"github.com/kumiki-scheduler/kumiki/app/command/wiring"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/examples/gangs"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// Releases are the releases of Kubernetes that a control plane can be of, the default first.
var Releases = []string{string(testcluster.Matched), string(testcluster.Previous)}

// Options are what to start.
type Options struct {
	Nodes int
	// Kubernetes is the release of the control plane, one of Releases.
	Kubernetes string
	// BinaryDir is the directory of the local cluster's program; empty means the source tree, or beside this program,
	// or PATH.
	BinaryDir string
	// File holds manifests to apply instead of the demonstration.
	File string
	// Gangs serves all APIs that declare gangs, enables all declarations, and applies an example of each unless there
	// is a File.
	Gangs bool
	// Once exits after the check instead of waiting for an interrupt.
	Once bool
	// Timeout bounds how long the pods may take.
	Timeout time.Duration
	// Out is for data, Err for progress.
	Out, Err io.Writer
	// Self is how the user calls this program, for hints.
	Self string
	// Version is that of this program, for the bundles of incidents.
	Version string
	// Live tells that Err is a terminal, on which a line can be written over.
	Live bool
}

// ErrFailed means that the check failed; the failures have been printed.
var ErrFailed = errors.New("not every pod that can run does")

// oneAtATime serializes the progress output of several goroutines.
type oneAtATime struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *oneAtATime) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(b)
}

// Run starts everything, reports, waits unless Once, and cleans up.
func Run(ctx context.Context, o Options) error {
	o.Err = &oneAtATime{w: o.Err}
	objects, err := o.objects()
	if err != nil {
		return err
	}
	cluster, err := launch(ctx, o)
	if err != nil {
		return err
	}
	err = o.inside(ctx, cluster, objects)
	switch {
	case ctx.Err() != nil && o.Once:
		err = errors.New("interrupted before the check was done")
	case ctx.Err() != nil:
		err = nil // the user has interrupted it
	}
	fmt.Fprintln(o.Err, "removing the cluster")
	return errors.Join(err, cluster.Close())
}

func (o Options) objects() ([]*unstructured.Unstructured, error) {
	switch {
	case o.File != "":
		return fileObjects(o.File)
	case o.Gangs:
		all, err := embedded(gangs.Files)
		for _, object := range all {
			if group := object.GroupVersionKind().Group; group == "scheduling.k8s.io" {
				object.SetAPIVersion(group + "/" + testcluster.Release(o.Kubernetes).GangVersion()) // a PodGroup
			}
		}
		return all, err
	}
	return demoObjects(o.Nodes)
}

// launch starts the cluster. The cluster outlives ctx, so that what runs in it can be stopped first; but ctx ends its
// start.
func launch(ctx context.Context, o Options) (*testcluster.Cluster, error) {
	fmt.Fprintf(o.Err, "starting a cluster of %d nodes; the first time, its parts are built, which takes some "+
		"minutes\n", o.Nodes)
	begin := time.Now()
	lifetime, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	cluster, err := testcluster.Launch(lifetime, testcluster.Options{Kubernetes: testcluster.Release(o.Kubernetes),
		BinaryDir: o.BinaryDir, NodeSpec: nodeSpec(o.Nodes), Gangs: o.Gangs, Progress: o.Err})
	stop()
	if err != nil {
		end()
		return nil, fmt.Errorf("local cluster: %w", err)
	}
	fmt.Fprintf(o.Err, "the cluster is ready after %.1fs (%.1fs without the build)\n", time.Since(begin).Seconds(),
		cluster.StartupSeconds)
	return cluster, nil
}

// inside runs the scheduler in the cluster, applies the workload and reports.
func (o Options) inside(ctx context.Context, cluster *testcluster.Cluster, objects []*unstructured.Unstructured) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig of the cluster: %w", err)
	}
	cfg.QPS, cfg.Burst = -1, -1 // the cluster is ours
	api, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	applier, err := newApplier(cfg)
	if err != nil {
		return err
	}
	if o.Gangs {
		if err := applier.defineGangs(ctx); err != nil {
			return err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	scheduler, err := o.startScheduler(ctx, cluster)
	if err != nil {
		stop()
		return err
	}
	defer func() {
		stop()
		<-scheduler.ended
	}()
	if err := scheduler.ready(ctx, cluster); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "export KUBECONFIG=%s\n", cluster.Kubeconfig)

	pods := newTracker(time.Now)
	if err := follow(ctx, api, pods); err != nil {
		return err
	}
	if err := applier.apply(ctx, objects); err != nil {
		return err
	}
	sum, settled, err := o.settle(ctx, api, pods, wantedOf(objects), scheduler)
	if err != nil {
		return err
	}
	verdict := o.report(ctx, cfg, sum, settled)
	if o.Once {
		return verdict
	}
	o.next(sum)
	select {
	case <-ctx.Done():
		return nil
	case <-scheduler.ended:
		return scheduler.err
	case <-cluster.Ended():
		return fmt.Errorf("the cluster ended: %s", cluster.Output())
	}
}

// follow starts the watch of all pods.
func follow(ctx context.Context, api kubernetes.Interface, pods *tracker) error {
	factory := informers.NewSharedInformerFactory(api, 0)
	informer := factory.Core().V1().Pods().Informer()
	if err := informer.SetTransform(keepTracked); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	if _, err := informer.AddEventHandler(pods.handler()); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("watching pods: %w", ctx.Err())
	}
	return nil
}

// keepTracked drops what the tracker does not read.
func keepTracked(o any) (any, error) {
	if p, ok := o.(*v1.Pod); ok {
		p.ManagedFields = nil
		p.Spec.Containers, p.Spec.InitContainers, p.Spec.Volumes = nil, nil, nil
	}
	return o, nil
}

// running is the scheduler in this process.
type running struct {
	*app.Scheduler
	ended chan struct{}
	err   error // valid when ended is closed
}

// startScheduler runs kumiki with the rights of system:kube-scheduler. Its log is among the cluster's logs.
func (up Options) startScheduler(ctx context.Context, cluster *testcluster.Cluster) (*running, error) {
	logs, err := os.Create(filepath.Join(cluster.Logs(), "kumiki.log"))
	if err != nil {
		return nil, fmt.Errorf("log of the scheduler: %w", err)
	}
	klog.LogToStderr(false)
	klog.SetOutput(logs)
	o := app.DefaultOptions()
	o.Kubeconfig = cluster.SchedulerKubeconfig
	if up.Gangs {
		o.Config.Kumiki.Gangs = config.Gangs{PodGroup: config.On, Annotation: config.On, Sigs: config.On,
			Volcano: config.On, Pfnet: config.DefaultPfnetPrefix}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("port of the scheduler: %w", err)
	}
	o.Serve.Secure.Listener = listener
	o.Serve.Secure.BindAddress = net.IPv4(127, 0, 0, 1)
	o.Serve.Secure.BindPort = listener.Addr().(*net.TCPAddr).Port
	wiring.View(&o)
	incidentsEnded := wiring.Incidents(ctx, &o, incidents.Options{Tool: "kumiki " + up.Version})
	s, err := app.NewScheduler(ctx, o)
	if err != nil {
		incidentsEnded(err)
		listener.Close()
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	r := &running{Scheduler: s, ended: make(chan struct{})}
	go func() {
		r.err = s.Run(ctx)
		incidentsEnded(r.err)
		klog.Flush()
		klog.SetOutput(io.Discard)
		logs.Close()
		close(r.ended)
	}()
	fmt.Fprintf(up.Err, "kumiki schedules as default-scheduler; its log is %s\n", logs.Name())
	return r, nil
}

// ready waits until the scheduler knows the cluster.
func (r *running) ready(ctx context.Context, cluster *testcluster.Cluster) error {
	select {
	case <-r.Synced():
		return nil
	case <-r.ended:
		return fmt.Errorf("scheduler: %w", r.err)
	case <-cluster.Ended():
		return fmt.Errorf("the cluster ended: %s", cluster.Output())
	case <-ctx.Done():
		return ctx.Err()
	}
}

const (
	// pollEvery is the period of progress checks.
	pollEvery = 250 * time.Millisecond
	// quietFor is the time without changes after which the pods count as settled.
	quietFor = 2 * time.Second
	// sayEvery is the period of progress lines if they cannot be overwritten.
	sayEvery = 2 * time.Second
)

// settle waits until every pod has a node and runs, or has a reason why not. After the timeout it returns the present
// state.
func (o Options) settle(ctx context.Context, api kubernetes.Interface, pods *tracker, want wanted,
	scheduler *running) (summary, bool, error) {
	begin, said := time.Now(), time.Time{}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return summary{}, false, ctx.Err()
		case <-scheduler.ended:
			return summary{}, false, fmt.Errorf("the scheduler ended: %w", scheduler.err)
		case <-tick.C:
		}
		if err := want.count(ctx, api); err != nil {
			return summary{}, false, err
		}
		s := pods.summary()
		total, _ := want.total()
		if o.Live {
			fmt.Fprintf(o.Err, "\r%d of %d pods bound, %d running, %d waiting, %.0f pods/s   ", s.bound,
				max(total, s.pods), s.running, s.waiting, s.perSecond)
		} else if time.Since(said) > sayEvery {
			said = time.Now()
			fmt.Fprintf(o.Err, "%d of %d pods bound, %d running, %d waiting, %.0f pods/s\n", s.bound,
				max(total, s.pods), s.running, s.waiting, s.perSecond)
		}
		done := want.reached(s) && s.settled && s.quiet > quietFor
		if done || time.Since(begin) > o.Timeout {
			if o.Live {
				fmt.Fprintln(o.Err)
			}
			return s, done, nil
		}
	}
}

// find finds the scheduler as every user does.
func find(ctx context.Context, cfg *rest.Config) (*ask.Client, error) {
	found, err := ask.Find(ctx, cfg, ask.Default(), "")
	if err != nil {
		return nil, err
	}
	return found[0].Connect(ctx)
}
