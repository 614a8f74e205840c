// SPDX-License-Identifier: Apache-2.0

package ladder

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/internal/e2e/checker"
)

// oversell is a bind after which a node held more than it offers.
type oversell struct {
	node, pod string
	// by is the scheduler whose bind came last and made it too much.
	by string
	// beside is how long the last bind of another scheduler on the node had been seen by then; negative when there
	// was none.
	beside time.Duration
	what   string
}

// seenLong is after how long a scheduler has no excuse for not knowing a bind of another. Two that decide in the same
// moment cannot know of each other, because the API does not reserve the capacity of a node.
const seenLong = 500 * time.Millisecond

// blameless reports whether two schedulers met on the node in the same moment.
func (o oversell) blameless() bool { return o.beside >= 0 && o.beside < seenLong }

func (o oversell) String() string {
	return fmt.Sprintf("%s took %s for %s, %s after another scheduler's bind there: %s", o.by, o.node, o.pod, o.beside.Round(time.Millisecond), o.what)
}

// ledger follows all pods of a cluster in the order of their writes, and adds up every node after every bind. Sums
// are the checker's.
type ledger struct {
	client kubernetes.Interface
	cancel context.CancelFunc
	ended  chan struct{}

	mu    sync.Mutex
	nodes map[string]v1.Node // name -> as it was at the start
	// on holds the pods that take capacity: node -> UID -> pod.
	on map[string]map[types.UID]v1.Pod
	// last is who bound to a node, and when it was seen: node -> scheduler -> time.
	last map[string]map[string]time.Time
	// bound has every pod that was seen on a node, gone ones too: namespace/name -> when.
	bound map[string]time.Time
	// waits has the pods without a node: namespace/name -> why.
	waits  map[string]string
	lost   []string // pods that went before they had a node
	failed []string // pods that ended badly, with the reason
	sold   []oversell
	binds  []time.Time // in order of seeing
}

// follow begins to keep a ledger. The nodes must not change.
func follow(ctx context.Context, client kubernetes.Interface) (*ledger, error) {
	l := newLedger(client)
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, n := range nodes.Items {
		l.nodes[n.Name] = n
	}
	ctx, l.cancel = context.WithCancel(ctx)
	go func() {
		defer close(l.ended)
		for ctx.Err() == nil {
			l.watch(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return l, nil
}

func newLedger(client kubernetes.Interface) *ledger {
	return &ledger{client: client, ended: make(chan struct{}), nodes: map[string]v1.Node{}, on: map[string]map[types.UID]v1.Pod{},
		last: map[string]map[string]time.Time{}, bound: map[string]time.Time{}, waits: map[string]string{}}
}

func (l *ledger) stop() {
	l.cancel()
	<-l.ended
}

func (l *ledger) watch(ctx context.Context) {
	api := l.client.CoreV1().Pods(metav1.NamespaceAll)
	list, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, p := range l.missing(list.Items) {
		l.see(watch.Deleted, &p, time.Now())
	}
	for i := range list.Items {
		l.see(watch.Modified, &list.Items[i], time.Now())
	}
	w, err := api.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return
	}
	defer w.Stop()
	defer context.AfterFunc(ctx, w.Stop)()
	for ev := range w.ResultChan() {
		p, isPod := ev.Object.(*v1.Pod)
		if !isPod || ev.Type == watch.Error {
			return
		}
		l.see(ev.Type, p, time.Now())
	}
}

// missing are the pods on nodes that a list no longer has: they were deleted while no watch was open.
func (l *ledger) missing(list []v1.Pod) (gone []v1.Pod) {
	there := map[types.UID]bool{}
	for i := range list {
		there[list[i].UID] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, pods := range l.on {
		for uid, p := range pods {
			if !there[uid] {
				gone = append(gone, p)
			}
		}
	}
	return gone
}

// see takes the next write of a pod.
func (l *ledger) see(what watch.EventType, p *v1.Pod, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name, node := p.Namespace+"/"+p.Name, p.Spec.NodeName
	delete(l.waits, name)
	if node == "" {
		if what == watch.Deleted {
			l.lost = append(l.lost, name)
		} else {
			l.waits[name] = whyItWaits(p)
		}
		return
	}
	_, known := l.bound[name]
	if !known {
		l.bound[name] = now
		l.binds = append(l.binds, now)
	}
	if p.Status.Phase == v1.PodFailed && what != watch.Deleted && l.on[node][p.UID].Name != "" {
		l.failed = append(l.failed, fmt.Sprintf("%s on %s: %s", name, node, p.Status.Reason))
	}
	if what == watch.Deleted || p.Status.Phase == v1.PodFailed || p.Status.Phase == v1.PodSucceeded {
		delete(l.on[node], p.UID)
		return
	}
	if l.on[node] == nil {
		l.on[node], l.last[node] = map[types.UID]v1.Pod{}, map[string]time.Time{}
	}
	l.on[node][p.UID] = *p
	if !known {
		l.add(p, now)
	}
}

// add judges a node to which a pod was just bound.
func (l *ledger) add(p *v1.Pod, now time.Time) {
	node := p.Spec.NodeName
	beside := time.Duration(-1)
	for scheduler, at := range l.last[node] {
		if gap := now.Sub(at); scheduler != p.Spec.SchedulerName && (beside < 0 || gap < beside) {
			beside = gap
		}
	}
	l.last[node][p.Spec.SchedulerName] = now
	var pods []v1.Pod
	for _, other := range l.on[node] {
		pods = append(pods, other)
	}
	if found := checker.Sums([]v1.Node{l.nodes[node]}, pods); len(found) > 0 {
		l.sold = append(l.sold, oversell{node, p.Namespace + "/" + p.Name, p.Spec.SchedulerName, beside, strings.Join(found, "; ")})
	}
}

func whyItWaits(p *v1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	return "nobody has looked at it"
}

// look reads the ledger.
func (l *ledger) look(f func(*ledger)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l)
}

// longestPause is the longest time without a bind after a moment.
func (l *ledger) longestPause(since time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var longest time.Duration
	for _, at := range l.binds {
		if at.Before(since) {
			continue
		}
		longest, since = max(longest, at.Sub(since)), at
	}
	return longest
}

// TestTheLedgerBlamesTheLastBind shows the ledger a node with capacity for two. Faults: a bind that is counted twice;
// capacity that is not freed; the first of two schedulers blamed; two binds in the same moment not distinguished from
// one by a scheduler that could have known of the other.
func TestTheLedgerBlamesTheLastBind(t *testing.T) {
	l := newLedger(nil)
	l.nodes["n"] = v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{
		"cpu": resource.MustParse("2"), "pods": resource.MustParse("10")}}}
	begin := time.Now()
	see := func(what watch.EventType, name, by, node string, phase v1.PodPhase, after time.Duration) {
		l.see(what, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}, Status: v1.PodStatus{Phase: phase},
			Spec: v1.PodSpec{SchedulerName: by, NodeName: node, Containers: []v1.Container{{Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{"cpu": resource.MustParse("1")}}}}}}, begin.Add(after))
	}
	see(watch.Added, "a", "them", "", "", 0)
	see(watch.Modified, "a", "them", "n", "", 0)
	see(watch.Modified, "a", "them", "n", v1.PodRunning, 0)
	see(watch.Modified, "b", "us", "n", "", 0)
	see(watch.Modified, "a", "them", "n", v1.PodSucceeded, 0)
	see(watch.Modified, "c", "them", "n", "", time.Second)
	if len(l.sold) != 0 {
		t.Fatalf("two at a time fit, and the ledger found %v", l.sold)
	}
	see(watch.Modified, "d", "us", "n", "", time.Second+time.Millisecond)
	see(watch.Modified, "d", "us", "n", v1.PodFailed, 2*time.Second)
	see(watch.Modified, "e", "us", "n", "", time.Minute)
	see(watch.Added, "f", "us", "", "", time.Minute)
	see(watch.Deleted, "f", "us", "", "", time.Minute)
	var got []string
	for _, o := range l.sold {
		got = append(got, fmt.Sprint(o.by, " ", o.pod, " ", o.blameless()))
	}
	if want := []string{"us ns/d true", "us ns/e false"}; !slices.Equal(got, want) {
		t.Errorf("the ledger found %q, want %q", got, want)
	}
	if len(l.bound) != 5 || len(l.waits) != 0 || !slices.Equal(l.lost, []string{"ns/f"}) || len(l.failed) != 1 {
		t.Errorf("bound %v, waiting %v, lost %v, failed %v", l.bound, l.waits, l.lost, l.failed)
	}
	if p := l.longestPause(begin.Add(time.Second)); p != time.Minute-time.Second-time.Millisecond {
		t.Errorf("the longest pause is %s", p)
	}
}
