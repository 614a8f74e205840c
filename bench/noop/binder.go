// SPDX-License-Identifier: Apache-2.0

package noop

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/kube"
	"github.com/kumiki-scheduler/kumiki/kube/effects"
)

// eventsInFlight is how many events the no-op binder writes concurrently: as many as kumiki.
const eventsInFlight = 16

// options configure a no-op binder.
type options struct {
	kubeconfig string
	qps        float32
	burst      int
	inFlight   int
	cpuProfile string
	// play is a recording to replay; if empty, pods are bound to the nodes round robin.
	play string
}

func NewCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:    "null",
		Short:  "Bind pods to nodes round robin without decisions (the no-op binder, the baseline of bench)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o, cmd.OutOrStdout()) },
	}
	fs := cmd.Flags()
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "path of the kubeconfig `file`")
	fs.Float32Var(&o.qps, "qps", testbed.DefaultQPS, "maximum requests per second of each client")
	fs.IntVar(&o.burst, "burst", testbed.DefaultBurst, "maximum burst of requests of each client")
	fs.IntVar(&o.inFlight, "in-flight", effects.DefaultBindsInFlight, "maximum number of binds in flight")
	fs.StringVar(&o.play, "play", "", "replay the decisions of the run recorded in this `file` (default: nodes round robin)")
	fs.StringVar(&o.cpuProfile, "cpuprofile", "", "write a CPU profile to this `file`")
	return cmd
}

// newBinder has buffers for all pods and events of a run, so that no watch waits for a binder.
func newBinder() *binder {
	return &binder{stderr: os.Stderr, pods: make(chan *corev1.Pod, 1<<20), bound: make(chan *eventsv1.Event, 1<<20)}
}

// binder binds each pending pod to the next node and writes the event that a scheduler writes.
type binder struct {
	clients *kube.Clients
	nodes   []string
	host    string
	stderr  io.Writer
	pods    chan *corev1.Pod
	bound   chan *eventsv1.Event
}

// run binds until ctx ends.
func run(ctx context.Context, o options, out io.Writer) error {
	if o.cpuProfile != "" {
		f, err := os.Create(o.cpuProfile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	cfg, err := kube.RestConfig(kube.ClientOptions{Kubeconfig: o.kubeconfig, QPS: o.qps, Burst: o.burst})
	if err != nil {
		return err
	}
	// Binds in flight are completed when ctx ends.
	calls, drop := context.WithCancel(context.WithoutCancel(ctx))
	defer drop()
	n := newBinder()
	if n.clients, err = kube.NewClients(cfg); err != nil {
		return err
	}
	defer n.clients.Close()
	if n.host, err = os.Hostname(); err != nil {
		return fmt.Errorf("host name, for events: %w", err)
	}
	if o.play != "" {
		pl, err := newPlayer(n, o.play)
		if err != nil {
			return err
		}
		n.work(calls, o.inFlight, func(int) { pl.playAll(calls) }, func() {
			pl.follow(ctx, func() { fmt.Fprintln(out, testbed.ReadyLine) })
			close(pl.jobs)
		})
		return nil
	}
	list, err := n.clients.Watches.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for _, node := range list.Items {
		n.nodes = append(n.nodes, node.Name)
	}
	if len(n.nodes) == 0 {
		return fmt.Errorf("there are no nodes to bind to")
	}

	n.work(calls, o.inFlight, func(i int) { n.bindAll(calls, i, o.inFlight) }, func() {
		n.watch(ctx, func() { fmt.Fprintln(out, testbed.ReadyLine) })
	})
	return nil
}

// work runs binders as long as watch runs, and until all their pods are bound and reported.
func (n *binder) work(ctx context.Context, inFlight int, binder func(i int), watch func()) {
	var binders, writers sync.WaitGroup
	for i := range inFlight {
		binders.Go(func() { binder(i) })
	}
	for range eventsInFlight {
		writers.Go(func() { n.writeAll(ctx) })
	}
	watch()
	close(n.pods)
	binders.Wait()
	close(n.bound)
	writers.Wait()
}

// watch passes pending pods to the binders until ctx ends. It watches the objects that schedulers watch, so that the
// API server has the same load.
func (n *binder) watch(ctx context.Context, listed func()) {
	watchPods(ctx, n.clients.Watches, eachOnce(listed, func(p *corev1.Pod) {
		if p.Spec.NodeName == "" {
			n.pods <- p
		}
	}))
}

// bindAll binds pods until there are no more. Each of the binders walks its own part of the nodes, so that pods are
// spread evenly without a lock.
func (n *binder) bindAll(ctx context.Context, first, step int) {
	next := first
	for p := range n.pods {
		node := n.nodes[next%len(n.nodes)]
		next += step
		if err := n.bind(ctx, p, node); err != nil {
			fmt.Fprintf(n.stderr, "%s/%s: %v\n", p.Namespace, p.Name, err)
		}
	}
}

// bind binds a pod and leaves its event to the writers.
func (n *binder) bind(ctx context.Context, p *corev1.Pod, node string) error {
	if err := n.bindOnly(ctx, p, node); err != nil {
		return err
	}
	n.bound <- n.event(p, node)
	return nil
}

// bindOnly binds a pod without writing an event.
func (n *binder) bindOnly(ctx context.Context, p *corev1.Pod, node string) error {
	err := n.clients.Binds.CoreV1().Pods(p.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	return nil
}

// event returns the event that schedulers write about a pod that they bound.
func (n *binder) event(p *corev1.Pod, node string) *eventsv1.Event {
	now := time.Now()
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: p.Name + "." + strconv.FormatInt(now.UnixNano(), 16), Namespace: p.Namespace},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: "default-scheduler",
		ReportingInstance:   "default-scheduler-" + n.host,
		Action:              "Binding",
		Reason:              "Scheduled",
		Regarding: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: p.Namespace, Name: p.Name, UID: p.UID,
			ResourceVersion: p.ResourceVersion},
		Note: "Successfully assigned " + p.Namespace + "/" + p.Name + " to " + node,
		Type: corev1.EventTypeNormal,
	}
}

func (n *binder) writeAll(ctx context.Context) {
	for e := range n.bound {
		if err := writeEvent(ctx, n.clients.Events, e); err != nil {
			fmt.Fprintf(n.stderr, "event of %s/%s: %v\n", e.Regarding.Namespace, e.Regarding.Name, err)
		}
	}
}

func writeEvent(ctx context.Context, client kubernetes.Interface, e *eventsv1.Event) error {
	_, err := client.EventsV1().Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
	return err
}
