// SPDX-License-Identifier: Apache-2.0

package fakenodes

import (
	"sort"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/localcluster/admission"
)

// ledger holds the nodes, the pods bound to them and the admission verdict of each. Its Pod
// methods are called by one goroutine, in the order of the watch; readers may come from
// anywhere.
type ledger struct {
	// enforce is false when --kubelet-admission=false: everything is admitted.
	enforce bool
	// refetch reads a node past the watch, before a pod is refused: a label
	// that was set just before the bind may not have come in yet. Nil keeps
	// what is known.
	refetch func(name string) *v1.Node
	// changed is called, without the lock, with each pod that may need work.
	changed func(types.UID)
	// rejected is called, without the lock, once for each pod that is refused,
	// or evicted for a critical one.
	rejected func(*v1.Pod, admission.Verdict)

	mu sync.Mutex
	// nodes: node name -> latest object.
	nodes map[string]*v1.Node
	// pods: uid -> what is known about a pod that has a node.
	pods map[types.UID]*entry
	// hosts: node name -> pods and usage, also of nodes not seen (yet).
	hosts map[string]*host
	// touched are pods that got something to do through another pod's event.
	touched []types.UID
}

// entry is one bound pod.
type entry struct {
	pod *v1.Pod
	// state says whether the pod holds a share of its node.
	state podState
	// share is what the pod holds; valid in state admitted.
	share admission.Share
	// verdict is valid in states refused and evicted.
	verdict admission.Verdict
	// resize is valid in state admitted.
	resize resize
}

type podState int

const (
	// undecided: the node is not known, or the pod is being deleted and was
	// never admitted.
	undecided podState = iota
	admitted
	refused
	// evicted: was admitted, then evicted for a critical pod; holds nothing.
	evicted
	// over: terminal; holds nothing.
	over
)

type host struct {
	usage *admission.Usage
	// pods: uids on this node.
	pods map[types.UID]bool
	// deferred: uids of the pods whose resize waits for capacity.
	deferred map[types.UID]bool
}

func newLedger() *ledger {
	return &ledger{
		enforce:  true,
		changed:  func(types.UID) {},
		rejected: func(*v1.Pod, admission.Verdict) {},
		nodes:    map[string]*v1.Node{},
		pods:     map[types.UID]*entry{},
		hosts:    map[string]*host{},
	}
}

// view is a consistent copy of what a worker needs.
type view struct {
	pod     *v1.Pod
	node    *v1.Node
	state   podState
	verdict admission.Verdict
	resize  resize
}

// look gives the view of a pod; false when the pod is gone or its node unknown.
func (l *ledger) look(uid types.UID) (view, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.pods[uid]
	if e == nil {
		return view{}, false
	}
	node := l.nodes[e.pod.Spec.NodeName]
	return view{pod: e.pod, node: node, state: e.state, verdict: e.verdict, resize: e.resize}, node != nil
}

// SetPod takes in a pod that was added or changed.
func (l *ledger) SetPod(pod *v1.Pod) {
	if pod.Spec.NodeName == "" {
		return
	}
	l.mu.Lock()
	losers := l.setPod(pod)
	l.mu.Unlock()
	for _, e := range losers {
		l.rejected(e.pod, e.verdict)
		l.changed(e.pod.UID)
	}
	l.changed(pod.UID)
	l.flush()
}

// setPod gives copies of the entries that just lost their place: the pod, or
// those that a critical pod pushed out.
func (l *ledger) setPod(pod *v1.Pod) []entry {
	e := l.pods[pod.UID]
	if e == nil {
		e = &entry{}
		l.pods[pod.UID] = e
		l.host(pod.Spec.NodeName).pods[pod.UID] = true
	}
	e.pod = pod
	switch {
	case terminal(pod):
		l.release(e)
		e.state = over
		l.capacityFreed(pod.Spec.NodeName)
	case e.state == admitted:
		// A resize changes what the pod holds.
		l.release(e)
		l.admit(e)
		l.capacityFreed(pod.Spec.NodeName)
	case e.state == undecided:
		return l.decide(e)
	}
	return nil
}

// decide settles an undecided pod if its node is known, and gives the losers.
func (l *ledger) decide(e *entry) []entry {
	pod := e.pod
	if pod.Status.Phase == v1.PodRunning {
		// Admitted by an earlier process of this role.
		l.admit(e)
		return nil
	}
	node := l.nodes[pod.Spec.NodeName]
	if node == nil || pod.DeletionTimestamp != nil {
		return nil
	}
	if !l.enforce {
		l.admit(e)
		return nil
	}
	usage := l.host(node.Name).usage
	verdict := usage.Admit(node, pod)
	if !verdict.Admitted && l.refetch != nil {
		if fresh := l.refetch(node.Name); fresh != nil {
			verdict = usage.Admit(fresh, pod)
		}
	}
	var losers []entry
	if !verdict.Admitted && admission.Critical(pod) {
		result := admission.Preempt(pod, l.holders(node.Name), verdict)
		verdict = result.Verdict
		for _, victim := range result.Victims {
			losers = append(losers, l.evict(l.pods[victim.UID]))
		}
	}
	if verdict.Admitted {
		l.admit(e)
		return losers
	}
	e.state, e.verdict = refused, verdict
	return []entry{*e}
}

// holders are the admitted pods of a node, the longest there first.
func (l *ledger) holders(name string) []*v1.Pod {
	var out []*v1.Pod
	for uid := range l.host(name).pods {
		if e := l.pods[uid]; e.state == admitted {
			out = append(out, e.pod)
		}
	}
	sort.Slice(out, func(i, j int) bool { return arrivedBefore(out[i], out[j]) })
	return out
}

func (l *ledger) evict(e *entry) entry {
	l.release(e)
	e.state = evicted
	e.verdict = admission.Verdict{Reason: admission.ReasonPreempting, Message: admission.MessagePreempting}
	return *e
}

func (l *ledger) admit(e *entry) {
	l.hold(e)
	e.state = admitted
}

func (l *ledger) release(e *entry) {
	if e.state == admitted {
		h := l.host(e.pod.Spec.NodeName)
		h.usage.Remove(e.share)
		delete(h.deferred, e.pod.UID)
		e.share, e.resize = admission.Share{}, resize{}
	}
}

func (l *ledger) host(node string) *host {
	h := l.hosts[node]
	if h == nil {
		h = &host{usage: admission.NewUsage(), pods: map[types.UID]bool{}, deferred: map[types.UID]bool{}}
		l.hosts[node] = h
	}
	return h
}

// DropPod forgets a pod that is gone.
func (l *ledger) DropPod(uid types.UID) {
	l.mu.Lock()
	l.dropPod(uid)
	l.mu.Unlock()
	l.flush()
}

func (l *ledger) dropPod(uid types.UID) {
	e := l.pods[uid]
	if e == nil {
		return
	}
	l.release(e)
	delete(l.pods, uid)
	name := e.pod.Spec.NodeName
	h := l.hosts[name]
	delete(h.pods, uid)
	if len(h.pods) == 0 && l.nodes[name] == nil {
		delete(l.hosts, name)
	}
	l.capacityFreed(name)
}

// ReplacePods takes in a full list: running pods first, then by creation, so
// that a list after a restart admits what a kubelet would.
func (l *ledger) ReplacePods(pods []*v1.Pod) {
	// listed: uid -> in the list.
	listed := make(map[types.UID]bool, len(pods))
	for _, p := range pods {
		listed[p.UID] = true
	}
	l.mu.Lock()
	var gone []types.UID
	for uid := range l.pods {
		if !listed[uid] {
			gone = append(gone, uid)
		}
	}
	l.mu.Unlock()
	for _, uid := range gone {
		l.DropPod(uid)
	}
	sort.SliceStable(pods, func(i, j int) bool { return arrivedBefore(pods[i], pods[j]) })
	for _, p := range pods {
		l.SetPod(p)
	}
}

func arrivedBefore(a, b *v1.Pod) bool {
	if ra, rb := a.Status.Phase == v1.PodRunning, b.Status.Phase == v1.PodRunning; ra != rb {
		return ra
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}

// SetNode takes in a node that was added or changed, and decides the pods that
// waited for it.
func (l *ledger) SetNode(node *v1.Node) {
	l.mu.Lock()
	isNew := l.nodes[node.Name] == nil
	l.nodes[node.Name] = node
	var waiting []*v1.Pod
	if h := l.hosts[node.Name]; h != nil && isNew {
		for uid := range h.pods {
			waiting = append(waiting, l.pods[uid].pod)
		}
	}
	l.mu.Unlock()
	sort.SliceStable(waiting, func(i, j int) bool { return arrivedBefore(waiting[i], waiting[j]) })
	for _, p := range waiting {
		l.SetPod(p)
	}
}

// DropNode forgets a node. Its pods stay until they are deleted.
func (l *ledger) DropNode(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.nodes, name)
	if h := l.hosts[name]; h != nil && len(h.pods) == 0 {
		delete(l.hosts, name)
	}
}

// schedulable counts the given nodes that are Ready and free of the taint that
// admission puts on a new node.
func (l *ledger) schedulable(names []string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, name := range names {
		if node := l.nodes[name]; node != nil && ready(node) {
			n++
		}
	}
	return n
}

func ready(node *v1.Node) bool {
	for _, t := range node.Spec.Taints {
		if t.Key == v1.TaintNodeNotReady {
			return false
		}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == v1.NodeReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

func terminal(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodFailed || pod.Status.Phase == v1.PodSucceeded
}
