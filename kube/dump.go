// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/record"
)

// viewed is an engine about which questions can be asked: *engine.Engine.
type viewed interface{ View() engine.View }

// inspected answers questions about the engine. All but Takes must be called on the loop's goroutine.
type inspected interface {
	Takes(schedulerName string) bool
	EachNode(visit func(name string))
	EachPod(visit func(pod record.PodRef, node string, assumed bool))
	ExplainNode(name string) (record.NodeReport, bool)
	QueueReport() record.QueueReport
}

// nodesAtOnce is how many nodes are reported between two batches, so that the loop is not held up.
const nodesAtOnce = 64

// settle is how long a difference must last to be one: what is on the way when it is first seen has arrived by then.
const settle = 3 * time.Second

// dumper writes what the engine holds to the log, and how that differs from what the API server has.
type dumper struct {
	loop   *Loop
	engine inspected
	client kubernetes.Interface
	settle time.Duration
}

// DumpSignals gives a value for each SIGUSR2 that the process gets, until stop is called.
func DumpSignals() (asked <-chan os.Signal, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, dumpSignal)
	return signals, func() { signal.Stop(signals) }
}

// run dumps for each value of signals, until ctx ends.
func (d *dumper) run(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			d.dump(ctx)
		}
	}
}

func (d *dumper) dump(ctx context.Context) {
	log := klog.FromContext(ctx).WithName("dump")
	if err := d.compare(ctx, log); err != nil {
		log.Error(err, "What is held could not be compared with the API server")
	}
	if err := d.write(ctx, log); err != nil {
		log.Error(err, "Dump ended early")
	}
}

// holding is what one side has.
type holding struct {
	nodes map[string]bool   // node -> true
	pods  map[string]string // namespace/name and UID -> node; empty while it is pending or only assumed
}

func newHolding() holding { return holding{map[string]bool{}, map[string]string{}} }

// mismatch is how the engine differs from the API server, each sorted.
type mismatch struct {
	missedNodes, redundantNodes, missedPods, redundantPods []string
	misplacedPods                                          []string // bound to other nodes than the engine has them on
}

// compare looks twice and reports what was wrong both times.
func (d *dumper) compare(ctx context.Context, log klog.Logger) error {
	first, nodes, pods, err := d.look(ctx)
	if err != nil {
		return err
	}
	if !first.none() {
		if !call.Sleep(ctx, d.settle) {
			return ctx.Err()
		}
		second, _, _, err := d.look(ctx)
		if err != nil {
			return err
		}
		first = first.and(second)
	}
	if first.none() {
		log.Info("Cache matches the API server", "nodes", nodes, "pods", pods)
		return nil
	}
	log.Info("Cache mismatch", "missedNodes", first.missedNodes, "redundantNodes", first.redundantNodes)
	log.Info("Cache mismatch", "missedPods", first.missedPods, "redundantPods", first.redundantPods,
		"misplacedPods", first.misplacedPods)
	return nil
}

func (d *dumper) look(ctx context.Context) (m mismatch, nodes, pods int, err error) {
	there, err := d.listed(ctx)
	if err != nil {
		return m, 0, 0, err
	}
	here := newHolding()
	err = d.loop.Ask(ctx, func() {
		d.engine.EachNode(func(name string) { here.nodes[name] = true })
		d.engine.EachPod(func(p record.PodRef, node string, assumed bool) {
			if assumed {
				node = ""
			}
			here.pods[podID(p.Namespace, p.Name, p.UID)] = node
		})
	})
	return differ(here, there), len(there.nodes), len(there.pods), err
}

func podID(namespace, name, uid string) string { return namespace + "/" + name + " " + uid }

// listed is what the API server has of what the engine should know: all nodes, all bound pods, and pods that are ours
// to place.
func (d *dumper) listed(ctx context.Context) (holding, error) {
	have := newHolding()
	page := metav1.ListOptions{Limit: 500}
	for {
		list, err := d.client.CoreV1().Nodes().List(ctx, page)
		if err != nil {
			return have, fmt.Errorf("listing nodes: %w", err)
		}
		for i := range list.Items {
			have.nodes[list.Items[i].Name] = true
		}
		if page.Continue = list.Continue; page.Continue == "" {
			break
		}
	}
	page.FieldSelector = intake.Unfinished
	for {
		list, err := d.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, page)
		if err != nil {
			return have, fmt.Errorf("listing pods: %w", err)
		}
		for i := range list.Items {
			if p := &list.Items[i]; d.expected(p) {
				have.pods[podID(p.Namespace, p.Name, string(p.UID))] = p.Spec.NodeName
			}
		}
		if page.Continue = list.Continue; page.Continue == "" {
			return have, nil
		}
	}
}

func (d *dumper) expected(p *v1.Pod) bool {
	return p.Spec.NodeName != "" || d.engine.Takes(p.Spec.SchedulerName)
}

// differ compares what is here with what is there.
func differ(here, there holding) mismatch {
	m := mismatch{
		missedNodes: without(there.nodes, here.nodes), redundantNodes: without(here.nodes, there.nodes),
		missedPods: without(there.pods, here.pods), redundantPods: without(here.pods, there.pods),
	}
	for _, id := range slices.Sorted(maps.Keys(here.pods)) {
		if is, known := there.pods[id]; known && here.pods[id] != "" && is != "" && is != here.pods[id] {
			m.misplacedPods = append(m.misplacedPods, fmt.Sprintf("%s: here %s, API server %s", id, here.pods[id], is))
		}
	}
	return m
}

// without lists the keys of a that b lacks, sorted.
func without[V any](a, b map[string]V) []string {
	var list []string
	for key := range a { // order: sorted below
		if _, there := b[key]; !there {
			list = append(list, key)
		}
	}
	slices.Sort(list)
	return list
}

func (m mismatch) none() bool {
	return len(m.missedNodes)+len(m.redundantNodes)+len(m.missedPods)+len(m.redundantPods)+len(m.misplacedPods) == 0
}

// and is what is in both.
func (m mismatch) and(o mismatch) mismatch {
	both := func(a, b []string) []string {
		return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
	}
	return mismatch{both(m.missedNodes, o.missedNodes), both(m.redundantNodes, o.redundantNodes),
		both(m.missedPods, o.missedPods),
		both(m.redundantPods, o.redundantPods), both(m.misplacedPods, o.misplacedPods)}
}

// write logs nodes with their accounts and pods, and the queue.
func (d *dumper) write(ctx context.Context, log klog.Logger) error {
	var names []string
	if err := d.loop.Ask(ctx, func() {
		d.engine.EachNode(func(name string) {
			names = append(names, name)
		})
	}); err != nil {
		return err
	}
	slices.Sort(names)
	for some := range slices.Chunk(names, nodesAtOnce) {
		var reports []record.NodeReport
		err := d.loop.Ask(ctx, func() {
			for _, name := range some {
				if r, known := d.engine.ExplainNode(name); known {
					reports = append(reports, r)
				}
			}
		})
		if err != nil {
			return err
		}
		for i := range reports {
			log.Info("Dump of cached NodeInfo", "node", reports[i].Name, "resources", accountsText(&reports[i]),
				"pods", podsText(&reports[i]))
		}
	}
	var queue record.QueueReport
	if err := d.loop.Ask(ctx, func() { queue = d.engine.QueueReport() }); err != nil {
		return err
	}
	c := queue.Counts
	log.Info("Dump of scheduling queue", "active", c.Active, "inflight", c.InFlight, "backoff", c.Backoff,
		"unschedulable", c.Unschedulable, "gated", c.Gated, "inflightEvents", queue.InFlightEvents)
	for _, e := range queue.Entries {
		log.Info("Dump of scheduling queue", "pod", e.Pod.Key(), "uid", e.Pod.UID, "queue", e.Where,
			"attempts", e.Attempts, "plugins", e.Plugins)
	}
	return nil
}

func accountsText(r *record.NodeReport) string {
	var parts []string
	for _, a := range r.Resources {
		parts = append(parts, fmt.Sprintf("%s: allocatable %d, confirmed %d, assumed %d",
			a.Resource, a.Allocatable, a.Confirmed, a.Assumed))
	}
	return strings.Join(parts, "; ")
}

func podsText(r *record.NodeReport) []string {
	var list []string
	for _, p := range r.Pods {
		text := podID(p.Pod.Namespace, p.Pod.Name, p.Pod.UID)
		if p.Assumed {
			text += " assumed"
		}
		list = append(list, text)
	}
	return list
}
